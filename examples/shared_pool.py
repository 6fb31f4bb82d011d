"""Score the rows of a Parquet table with a model: pyarrow, NumPy and ONNX Runtime under one memory limit.

All three take their memory from one pool. The table at the end shows what each of them held at the end, and the line
below it the peak of all together. With a limit that is too small, the library that asked for too much raises its own
exception, with the pool's report.

    python examples/shared_pool.py --rows 100000 --limit 64MiB
"""

import io
from collections import Counter

import click
import numpy as np
import onnx.parser
import onnxruntime
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

import allotment
from allotment.integrations import numpy as pooled_numpy
from allotment.integrations import onnxruntime as pooled_onnxruntime
from allotment.integrations import pyarrow as pooled_pyarrow

#: A logistic regression over two columns.
MODEL = """
    <ir_version: 8, opset_import: ["": 17]>
    scores (float[rows, 2] x) => (float[rows, 1] y)
    <float[2, 1] weights = {0.5, -0.25}>
    { z = MatMul(x, weights)  y = Sigmoid(z) }
"""


def parquet_file(rows: int) -> bytes:
    """Return a Parquet file with two columns of random numbers."""
    generator = np.random.default_rng(0)
    columns = {name: generator.normal(size=rows).astype(np.float32) for name in ("age", "income")}
    file = io.BytesIO()
    pq.write_table(pa.table(columns), file)
    return file.getvalue()


def owners(pool: allotment.Pool) -> Table:
    """Create a table of what each owner holds in the pool; NumPy's owners are lines of this program."""
    held: Counter[str] = Counter()
    for region in pool.snapshot().regions:
        for chunk in region.chunks:
            if chunk.in_use:
                held[chunk.owner or "unknown"] += chunk.requested
    table = Table("owner", "holds", title="Memory")
    for owner, nbytes in held.most_common():
        table.add_row(owner, f"{nbytes / 2**20:.2f} MiB")
    return table


@click.command()
@click.option("--rows", default=100_000, show_default=True, type=click.IntRange(1), help="Rows of the table.")
@click.option("--limit", default="64MiB", show_default=True, help="The most memory of all three libraries.")
def main(rows: int, limit: str) -> None:
    """Score the rows of a Parquet table with a model, under one memory limit."""
    file = parquet_file(rows)
    pool = allotment.Pool(limit, name="scoring", owner_tags=True)
    options = pooled_onnxruntime.session_options()
    options.log_severity_level = 4  # ONNX Runtime logs every exception
    with pooled_pyarrow.use(pool), pooled_onnxruntime.use(pool), pooled_numpy.use(pool):
        try:
            session = onnxruntime.InferenceSession(
                onnx.parser.parse_model(MODEL).SerializeToString(), options
            )
            table = pq.read_table(pa.BufferReader(file))
            x = np.stack([column.to_numpy() for column in table.columns], axis=1)
            (y,) = session.run(None, {"x": x})
        except Exception as refused:
            raise click.ClickException(f"{type(refused).__name__}: {refused}") from None
    Console().print(owners(pool))
    peak = pool.stats().peak_in_use / 2**20
    click.echo(f"{len(y)} scores, mean {float(y.mean()):.3f}; {peak:.2f} MiB at most")


if __name__ == "__main__":
    main()
