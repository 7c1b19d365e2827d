// SPDX-License-Identifier: Apache-2.0
//
// A template that needs another one, without end.
template <int n>
struct Deeper {
  static constexpr int value = Deeper<n + 1>::value;
};
KERNEL { return Deeper<0>::value; }
