"""`python -m swapcal.demo`: the demo with its usual settings."""

import sys

from swapcal.demo import main
from swapcal.errors import SwapcalError

try:
    main()
except SwapcalError as error:
    sys.exit(str(error))
