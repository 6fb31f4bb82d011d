"""Recipes for what layers and models of Keras own: attributes, containers, variables of the program, metrics."""

import random

from programs import Call, Family

FAMILY = Family()

#: Values of attributes: layers, weights, variables of the program, metrics, numbers.
_VALUES = (
    *("made()",) * 6,
    "owner.add_weight(shape=(next(numbers),))",
    "owner.add_weight(shape=(next(numbers),), trainable=False)",
    "tf.Variable(tf.ones((next(numbers),)))",
    "keras.metrics.Mean()",
    "other",
    "other.kernel",
    "3",
    "None",
)

#: Statements that change attributes and containers.
_CHANGES = (
    "owner.a = VALUE",
    "owner.a = VALUE",
    "owner.b = VALUE",
    "owner.l = [VALUE, VALUE]",
    "owner.l = [VALUE]",
    "owner.l = owner.d['x']",
    "owner.l.append(VALUE)",
    "owner.l.insert(0, VALUE)",
    "owner.l.extend([VALUE, [VALUE]])",
    "owner.l += [VALUE]",
    "owner.l[0] = VALUE",
    "owner.l[0:1] = [VALUE]",
    "owner.l.pop()",
    "owner.l.pop(0)",
    "owner.l.remove(owner.l[0])",
    "del owner.l[0]",
    "owner.l.clear()",
    "owner.l.reverse()",
    "owner.d = {'x': [VALUE], 'y': VALUE}",
    "owner.d['x'] = VALUE",
    "owner.d['z'] = VALUE",
    "owner.d.update({'z': VALUE})",
    "owner.d.setdefault('w', VALUE)",
    "owner.d.pop('y')",
    "owner.d.popitem()",
    "del owner.d['x']",
    "owner.d.clear()",
    "owner.t = (VALUE, [VALUE], {'x': VALUE})",
    "owner.t[1].append(VALUE)",
    "owner.t[2]['y'] = VALUE",
    "owner.o = OrderedDict(p=VALUE, q=VALUE)",
    "owner.o['r'] = VALUE",
    "owner.o.pop('p')",
    "owner.n = Pair(VALUE, [VALUE])",
    "owner.s = {VALUE}",
    "owner.s.add(VALUE)",
    "owner.s.clear()",
    "del owner.a",
    "del owner.b",
    "del owner.l",
    "owner.trainable = False",
    "owner.trainable = True",
)

#: The statements that make the containers.
_FIRST = (
    "owner.l = [VALUE, VALUE, VALUE]",
    "owner.d = {'x': [VALUE], 'y': VALUE}",
    "owner.t = (VALUE, [VALUE], {'x': VALUE})",
    "owner.o = OrderedDict(p=VALUE, q=VALUE)",
    "owner.s = {VALUE}",
)

_OWNERS = (
    *("Own()",) * 3,
    "OwnModel()",
    "keras.Sequential([made()])",
    "keras.Sequential([keras.Input((1,)), made()])",
    "(lambda i: keras.Model(i, made()(i)))(keras.Input((1,)))",
)


@FAMILY.of("keras.layers.Layer.weights")
def owned(function: str, rng: random.Random) -> Call:
    """The weights, layers and metrics of an object after random changes of its attributes."""
    statements = []
    first = [each for each in _FIRST if rng.random() < 0.6]
    for change in (*first, *rng.choices(_CHANGES, k=rng.randrange(2, 12))):
        while "VALUE" in change:
            change = change.replace("VALUE", rng.choice(_VALUES), 1)
        statements.append(change)
    if rng.random() < 0.25:
        statements.insert(rng.randrange(len(statements) + 1), "owner(tf.ones((1, 1)))")
    # A statement that fails does not stop the others.
    body = "".join(
        f"    tried(lambda owner, e={each!r}: exec(e, globals(), {{'owner': owner}}))\n"
        for each in statements
    )
    before = (
        "import itertools\n"
        "from collections import OrderedDict, namedtuple\n"
        "keras, numbers = tf.keras, itertools.count(2)\n"
        "Pair = namedtuple('Pair', 'a b')\n"
        "def made():\n"
        "    layer = keras.layers.Dense(next(numbers), use_bias=False)\n"
        "    layer.build((None, 1))\n"
        "    return layer\n"
        "class Own(keras.layers.Layer):\n"
        "    def call(self, x):\n"
        "        return x\n"
        "class OwnModel(keras.Model):\n"
        "    def call(self, x):\n"
        "        return x\n"
        "def shapes(variables):\n"
        "    return [tuple(each.shape) for each in variables]\n"
        "def run():\n"
        "    global other\n"
        f"    other, owner, seen = made(), {rng.choice(_OWNERS)}, []\n"
        "    module = tf.Module()\n"
        "    module.owner, module.list = owner, [other.kernel, tf.Variable(1.0)]\n"
        "    def tried(change):\n"
        "        try:\n"
        "            change(owner)\n"
        "        except Exception as error:\n"
        "            seen.append(type(error).__name__)\n"
        f"{body}"
        "    found = [owner.weights, owner.trainable_weights, owner.non_trainable_weights, owner.variables]\n"
        "    layers = len(owner.layers) if isinstance(owner, keras.Model) else None\n"
        "    return seen, list(map(shapes, found)), layers, len(owner.metrics), len(module.variables)\n"
    )
    return Call("run()", [], modes=(), before=before)
