// SPDX-License-Identifier: Apache-2.0
//
// Tree-walking evaluation. Tensors are kept as row-major scalars whatever their strides, so that a
// load is one multiply-add a dimension. Reductions run sequentially in row-major order of their
// axes.
#include "ir/interpret.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <optional>
#include <utility>

#include "base/assert.hpp"
#include "ir/scalar.hpp"

namespace ke::ir {
namespace {

// --- Bytes --------------------------------------------------------------------------------------
template <class T>
T read_as(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}
template <class T>
void write_as(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof(T));
}

Scalar real_scalar(double value) { return {.real = value, .integer = 0}; }
Scalar integer_scalar(int64_t value) { return {.real = 0, .integer = value}; }

Scalar read_scalar(DType dtype, const std::byte* from) {
  switch (dtype) {
    case DType::float64:
      return real_scalar(read_as<double>(from));
    case DType::float32:
      return real_scalar(static_cast<double>(read_as<float>(from)));
    case DType::float16:
      return real_scalar(static_cast<double>(half_value(read_as<uint16_t>(from))));
    case DType::bfloat16:
      return real_scalar(static_cast<double>(bfloat_value(read_as<uint16_t>(from))));
    case DType::int64:
      return integer_scalar(read_as<int64_t>(from));
    case DType::int32:
      return integer_scalar(read_as<int32_t>(from));
    case DType::int16:
      return integer_scalar(read_as<int16_t>(from));
    case DType::int8:
      return integer_scalar(read_as<int8_t>(from));
    case DType::uint8:
      return integer_scalar(read_as<uint8_t>(from));
    case DType::boolean:
      return integer_scalar(read_as<uint8_t>(from) != 0);
  }
  KE_ASSERT(false && "unknown dtype");
}

void write_scalar(DType dtype, Scalar value, std::byte* to) {
  switch (dtype) {
    case DType::float64:
      return write_as(to, value.real);
    case DType::float32:
      return write_as(to, static_cast<float>(value.real));
    case DType::float16:
      return write_as(to, half_bits(static_cast<float>(value.real)));
    case DType::bfloat16:
      return write_as(to, bfloat_bits(static_cast<float>(value.real)));
    case DType::int64:
      return write_as(to, value.integer);
    case DType::int32:
      return write_as(to, static_cast<int32_t>(value.integer));
    case DType::int16:
      return write_as(to, static_cast<int16_t>(value.integer));
    case DType::int8:
      return write_as(to, static_cast<int8_t>(value.integer));
    case DType::uint8:
    case DType::boolean:
      return write_as(to, static_cast<uint8_t>(value.integer));
  }
}

// Steps an odometer over extents; false after the last position. Empty extents have one position.
bool advance(std::vector<int64_t>& position, const std::vector<int64_t>& extents, size_t first) {
  for (size_t i = extents.size(); i-- > first;) {
    if (++position[i] < extents[i]) return true;
    position[i] = 0;
  }
  return false;
}

bool has_zero(const std::vector<int64_t>& extents, size_t first, size_t last) {
  for (size_t i = first; i < last; ++i) {
    if (extents[i] == 0) return true;
  }
  return false;
}

// --- Reductions ---------------------------------------------------------------------------------
struct Reducer {
  ReduceOp op;
  DType body;         // what arrives
  DType accumulator;  // what is kept
  Scalar value{};
  long double total = 0;  // of a floating sum: what it is compared with may add in any order
  int64_t seen = 0, best = 0;

  Reducer(ReduceOp reduce, DType body_dtype, DType accumulator_dtype)
      : op(reduce), body(body_dtype), accumulator(accumulator_dtype) {
    const bool one = op == ReduceOp::product || op == ReduceOp::all;
    if (op == ReduceOp::any || op == ReduceOp::all) accumulator = DType::boolean;
    if (op >= ReduceOp::maximum && op <= ReduceOp::argmin) accumulator = body;
    value = convert(DType::int64, accumulator, integer_scalar(one ? 1 : 0));
  }

  void add(Scalar item) {
    item = widened(item);
    if (op == ReduceOp::sum && is_floating(accumulator)) {
      total += static_cast<long double>(item.real);
    } else if (op == ReduceOp::sum) {
      combine(BinaryOp::add, item);
    }
    if (op == ReduceOp::product) combine(BinaryOp::mul, item);
    if (op == ReduceOp::any) combine(BinaryOp::logical_or, item);
    if (op == ReduceOp::all) combine(BinaryOp::logical_and, item);
    if (op == ReduceOp::maximum || op == ReduceOp::argmax) extreme(item, BinaryOp::gt);
    if (op == ReduceOp::minimum || op == ReduceOp::argmin) extreme(item, BinaryOp::lt);
    ++seen;
  }

  Scalar result(DType output) const {
    if (op == ReduceOp::argmax || op == ReduceOp::argmin) {
      return convert(DType::int64, output, integer_scalar(best));
    }
    if (op == ReduceOp::sum && is_floating(accumulator)) {
      return convert(DType::float64, output, {.real = static_cast<double>(total)});
    }
    return convert(accumulator, output, value);
  }

 private:
  Scalar widened(Scalar item) const { return convert(body, accumulator, item); }
  void combine(BinaryOp binary_op, Scalar item) {
    value = evaluate(binary_op, accumulator, value, item);
  }
  // The first extreme wins; the first NaN beats everything.
  void extreme(Scalar item, BinaryOp better) {
    const bool floating = is_floating(accumulator);
    const bool settled = seen > 0 && floating && std::isnan(value.real);
    const bool wins = seen == 0 || (floating && std::isnan(item.real)) ||
                      evaluate(better, accumulator, item, value).integer != 0;
    if (settled || !wins) return;
    value = item;
    best = seen;
  }
};

// --- The machine --------------------------------------------------------------------------------
class Interpreter {
 public:
  explicit Interpreter(const Program& program) : program_(program) {
    memory_.resize(program.tensors.size());
    written_.resize(program.tensors.size());
  }

  Result<void> bind(std::span<const TensorBytes> inputs) {
    if (inputs.size() != program_.inputs.size()) {
      return Error{Errc::invalid, fmt::format("{} inputs were given where the program takes {}",
                                              inputs.size(), program_.inputs.size())};
    }
    for (size_t i = 0; i < inputs.size(); ++i) TRY(bind_input(program_.inputs[i], inputs[i]));
    for (size_t i = 0; i < program_.tensors.size(); ++i) {
      const Tensor& tensor = program_.tensors[i];
      if (tensor.role != Role::constant) continue;
      for (double value : tensor.values) {
        memory_[i].push_back(convert(DType::float64, tensor.dtype, real_scalar(value)));
      }
      written_[i].assign(memory_[i].size(), true);
    }
    return {};
  }

  Result<void> run(const Stage& stage) {
    std::vector<Axis> axes = stage.parallel;
    std::vector<ExprPtr> store;
    for (size_t i = 0; i < axes.size(); ++i) store.push_back(axis(static_cast<int>(i)));
    axes.insert(axes.end(), stage.reduction.begin(), stage.reduction.end());
    const Work work{stage.output, *stage.body, store, stage.reduce, stage.accumulator};
    if (stage.is_scan()) return run_scan(work, axes, static_cast<size_t>(stage.scan));
    return run(work, axes, stage.is_map() ? axes.size() : stage.parallel.size());
  }

  Result<void> run(const FusedKernel& kernel) {
    for (const FusedStage& stage : kernel.stages) {
      std::vector<Axis> axes = kernel.rows;
      axes.insert(axes.end(), stage.inner.begin(), stage.inner.end());
      const bool map = stage.reduce == ReduceOp::none;
      const Work work{stage.output, *stage.body, stage.store, stage.reduce, stage.accumulator};
      if (stage.scan) {
        TRY(run_scan(work, axes, kernel.rows.size()));
      } else {
        TRY(run(work, axes, map ? axes.size() : kernel.rows.size()));
      }
    }
    return {};
  }

  Result<std::vector<TensorBytes>> outputs() const {
    std::vector<TensorBytes> result;
    for (TensorId id : program_.outputs) {
      const Tensor& tensor = program_.tensor(id);
      const std::vector<Scalar>& values = memory_[static_cast<size_t>(id.index)];
      const std::vector<bool>& written = written_[static_cast<size_t>(id.index)];
      TensorBytes bytes(static_cast<size_t>(tensor.elements() * bytes_of(tensor.dtype)));
      for (size_t i = 0; i * static_cast<size_t>(bytes_of(tensor.dtype)) < bytes.size(); ++i) {
        if (i >= values.size() || !written[i]) {
          return Error{Errc::invalid, fmt::format("output {} is not written whole", tensor.name)};
        }
        write_scalar(tensor.dtype, values[i],
                     bytes.data() + i * static_cast<size_t>(bytes_of(tensor.dtype)));
      }
      result.push_back(std::move(bytes));
    }
    return result;
  }

 private:
  struct Work {
    TensorId output;
    const Expr& body;
    const std::vector<ExprPtr>& store;
    ReduceOp reduce;
    DType accumulator;
  };

  Result<void> bind_input(TensorId id, const TensorBytes& bytes) {
    const Tensor& tensor = program_.tensor(id);
    if (static_cast<int64_t>(bytes.size()) != span_bytes(tensor)) {
      return Error{Errc::invalid, fmt::format("input {} has {} bytes where {} belong", tensor.name,
                                              bytes.size(), span_bytes(tensor))};
    }
    std::vector<Scalar>& values = memory_[static_cast<size_t>(id.index)];
    if (tensor.elements() == 0) return {};
    std::vector<int64_t> position(tensor.shape.size(), 0);
    do {
      int64_t offset = 0;
      for (size_t i = 0; i < position.size(); ++i) offset += position[i] * tensor.strides[i];
      values.push_back(read_scalar(tensor.dtype, bytes.data() + offset * bytes_of(tensor.dtype)));
    } while (advance(position, tensor.shape, 0));
    written_[static_cast<size_t>(id.index)].assign(values.size(), true);
    return {};
  }

  // Runs one scan along axes[scan].
  Result<void> run_scan(const Work& work, const std::vector<Axis>& axes, size_t scan) {
    const Tensor& output = program_.tensor(work.output);
    allocate(work.output);
    std::vector<int64_t> extents;
    for (const Axis& a : axes) extents.push_back(a.extent);
    axes_.assign(extents.size(), 0);
    error_.reset();
    if (has_zero(extents, 0, extents.size())) return {};
    const int64_t length = std::exchange(extents[scan], 1);
    do {
      Reducer reducer(work.reduce, work.body.dtype, work.accumulator);
      for (axes_[scan] = 0; axes_[scan] < length && !error_; ++axes_[scan]) {
        reducer.add(eval(work.body));
        store(work, reducer.result(output.dtype));
      }
      axes_[scan] = 0;
      if (error_) return *error_;
    } while (advance(axes_, extents, 0));
    return {};
  }

  // Runs one stage whose first row_count axes give one output element each.
  Result<void> run(const Work& work, const std::vector<Axis>& axes, size_t row_count) {
    const Tensor& output = program_.tensor(work.output);
    allocate(work.output);
    std::vector<int64_t> extents;
    for (const Axis& a : axes) extents.push_back(a.extent);
    axes_.assign(extents.size(), 0);
    error_.reset();
    if (has_zero(extents, 0, row_count)) return {};
    do {
      Scalar value{};
      if (work.reduce == ReduceOp::none) {
        value = convert(work.body.dtype, output.dtype, eval(work.body));
      } else {
        Reducer reducer(work.reduce, work.body.dtype, work.accumulator);
        if (!has_zero(extents, row_count, extents.size())) {
          do {
            reducer.add(eval(work.body));
          } while (!error_ && advance(axes_, extents, row_count));
        }
        value = reducer.result(output.dtype);
      }
      store(work, value);
      if (error_) return *error_;
    } while (next_row(extents, row_count));
    return {};
  }

  bool next_row(const std::vector<int64_t>& extents, size_t row_count) {
    for (size_t i = row_count; i-- > 0;) {
      if (++axes_[i] < extents[i]) return true;
      axes_[i] = 0;
    }
    return false;
  }

  void allocate(TensorId id) {
    const auto index = static_cast<size_t>(id.index);
    const auto elements = static_cast<size_t>(program_.tensors[index].elements());
    if (memory_[index].size() == elements) return;
    memory_[index].assign(elements, {});
    written_[index].assign(elements, false);
  }

  void store(const Work& work, Scalar value) {
    const std::optional<size_t> place = address(work.output, work.store);
    if (!place || error_) return;
    const auto index = static_cast<size_t>(work.output.index);
    if (written_[index][*place]) return fail(work.output, "has an element written twice");
    memory_[index][*place] = value;
    written_[index][*place] = true;
  }

  void fail(TensorId id, std::string_view what) {
    if (error_) return;
    error_ = Error{Errc::invalid, fmt::format("tensor {} {}", program_.tensor(id).name, what)};
  }

  std::optional<size_t> address(TensorId id, const std::vector<ExprPtr>& indices) {
    const Tensor& tensor = program_.tensor(id);
    int64_t place = 0;
    for (size_t i = 0; i < indices.size(); ++i) {
      const int64_t index = eval(*indices[i]).integer;
      if (index < 0 || index >= tensor.shape[i]) {
        fail(id, fmt::format("is accessed at {} in dimension {} of extent {}", index, i,
                             tensor.shape[i]));
        return std::nullopt;
      }
      place = place * tensor.shape[i] + index;
    }
    return static_cast<size_t>(place);
  }

  Scalar eval_load(const Expr& e) {
    const std::optional<size_t> place = address(e.tensor, e.operands);
    if (!place) return {};
    const auto index = static_cast<size_t>(e.tensor.index);
    if (*place >= memory_[index].size() || !written_[index][*place]) {
      fail(e.tensor, "is read before it is written");
      return {};
    }
    return memory_[index][*place];
  }

  Scalar eval(const Expr& e) {
    switch (e.kind) {
      case Expr::Kind::constant:
        return {.real = e.float_value, .integer = e.int_value};
      case Expr::Kind::axis:
        return integer_scalar(axes_[static_cast<size_t>(e.axis)]);
      case Expr::Kind::load:
        return eval_load(e);
      case Expr::Kind::unary:
        return evaluate(e.unary, e.operands[0]->dtype, eval(*e.operands[0]));
      case Expr::Kind::binary: {
        const Scalar a = eval(*e.operands[0]);
        return evaluate(e.binary, e.operands[0]->dtype, a, eval(*e.operands[1]));
      }
      case Expr::Kind::select:
        return eval(*e.operands[eval(*e.operands[0]).integer != 0 ? 1 : 2]);
      case Expr::Kind::cast:
        return convert(e.operands[0]->dtype, e.dtype, eval(*e.operands[0]));
    }
    KE_ASSERT(false && "unknown expression kind");
  }

  const Program& program_;
  std::vector<std::vector<Scalar>> memory_;  // one a tensor, row-major, empty until allocated
  std::vector<std::vector<bool>> written_;   // which elements hold a value
  std::vector<int64_t> axes_;                // current position
  std::optional<Error> error_;               // the first failure of the current stage
};

}  // namespace

int64_t span_bytes(const Tensor& tensor) {
  if (tensor.elements() == 0) return 0;
  int64_t last = 0;
  for (size_t i = 0; i < tensor.shape.size(); ++i) {
    last += (tensor.shape[i] - 1) * tensor.strides[i];
  }
  return (last + 1) * bytes_of(tensor.dtype);
}

Result<std::vector<TensorBytes>> interpret(const Program& program,
                                           std::span<const TensorBytes> inputs) {
  Interpreter machine(program);
  TRY(machine.bind(inputs));
  for (const Stage& stage : program.stages) TRY(machine.run(stage));
  return machine.outputs();
}

Result<std::vector<TensorBytes>> interpret(const Program& program,
                                           std::span<const FusedKernel> kernels,
                                           std::span<const TensorBytes> inputs) {
  Interpreter machine(program);
  TRY(machine.bind(inputs));
  for (const FusedKernel& kernel : kernels) {
    TRY(machine.run(kernel).context(fmt::format("kernel {}", kernel.name)));
  }
  return machine.outputs();
}

}  // namespace ke::ir
