"""``python -m pyspark_rocketmq FILE``: the packages for Spark's ``--py-files``, as a zip."""

import sys

from analytics.datasource.shipping import PACKAGES, zip_packages

if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit("usage: python -m pyspark_rocketmq rmqctl.zip")
    sys.stdout.write(f"wrote {zip_packages(sys.argv[1])}: {', '.join(PACKAGES)}\n")
