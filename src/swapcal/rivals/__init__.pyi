"""Every published method that the paper compares with, and what practitioners use, on one outer protocol.

One line for each method.
"""

from swapcal.rivals.card import Card as Card
from swapcal.rivals.card import all_rivals as all_rivals
from swapcal.rivals.conformal import MVP as MVP
from swapcal.rivals.conformal import AdaptiveConformal as AdaptiveConformal
from swapcal.rivals.conformal import GroupConformal as GroupConformal
from swapcal.rivals.foster_hart2023 import FosterHart2023 as FosterHart2023
from swapcal.rivals.garg2024 import Garg2024 as Garg2024
from swapcal.rivals.garg2024 import Garg2024Finite as Garg2024Finite
from swapcal.rivals.garg2024 import Garg2024Quantile as Garg2024Quantile
from swapcal.rivals.ghuge2025 import Ghuge2025 as Ghuge2025
from swapcal.rivals.ghuge2025 import Ghuge2025Oracle as Ghuge2025Oracle
from swapcal.rivals.gupta2022 import Gupta2022 as Gupta2022
from swapcal.rivals.haghtalab2023 import Haghtalab2023 as Haghtalab2023
from swapcal.rivals.hu_wu2024 import HuWu2024 as HuWu2024
from swapcal.rivals.luo2025 import Luo2025 as Luo2025
from swapcal.rivals.noarov import Noarov2025 as Noarov2025
from swapcal.rivals.noarov import NoarovRoth2023 as NoarovRoth2023
from swapcal.rivals.noarov import Roth2022 as Roth2022
from swapcal.rivals.okoroafor2025 import Okoroafor2025 as Okoroafor2025
from swapcal.rivals.practice import Clairvoyant as Clairvoyant
from swapcal.rivals.practice import LogisticRecalibration as LogisticRecalibration
from swapcal.rivals.practice import RawModel as RawModel
from swapcal.rivals.practice import RollingIsotonic as RollingIsotonic
from swapcal.rivals.practice import RollingProperty as RollingProperty
