# SPDX-License-Identifier: Apache-2.0
# verdicts: timed_out
# slow: yes
# Never comes to its class. (Loading is given a minute.)
import time

time.sleep(600)


class ModelNew(Base):
    pass
