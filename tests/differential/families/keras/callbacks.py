"""Recipes for Keras callbacks in trainings with prescribed losses."""

import random

from programs import Call, Family, Tolerance

FAMILY = Family()

CLOSE = Tolerance(64, 16)

_HELPERS = "keras, tools = tf.keras, keras_tools()\nmodel, x = tools.line(), np.ones((2, 1), 'float32')\n"


@FAMILY.of("keras.callbacks.EarlyStopping")
def early_stopping(function: str, rng: random.Random) -> Call:
    """EarlyStopping: epochs, state and weights after a training."""
    falling = [5.0, 4.0, 3.0, 2.0, 1.0, 0.5]
    values = rng.choice(
        (
            falling,
            falling[::-1],
            [1.0, 1.0, 1.0, 1.0, 1.0, 1.0],
            [3.0, 2.0, 2.5, 2.6, 1.0, 1.1],
            [1.0, 0.9, 0.85, 0.84, 0.839, 0.8389],
            [rng.randrange(5) / 2 for _ in range(6)],
            [1.0, float("nan"), 0.5, 0.4, 0.3, 0.2],
        )
    )
    given = ["monitor='v'"]
    for chance, options in (
        (0.6, ("patience=1", "patience=2", "patience=3", "patience=0")),
        (0.4, ("mode='min'", "mode='max'", "mode='auto'", "mode='other'")),
        (0.4, ("baseline=0.5", "baseline=2.5", "baseline=4.5", "baseline=100.0")),
        (0.3, ("min_delta=0.1", "min_delta=-0.1", "min_delta=1", "min_delta=0.0")),
        (0.4, ("restore_best_weights=True", "restore_best_weights=False")),
        (0.3, ("start_from_epoch=1", "start_from_epoch=3", "start_from_epoch=9")),
    ):
        if rng.random() < chance:
            given.append(rng.choice(options))
    if rng.random() < 0.08:
        given[0] = rng.choice(("monitor='w'", "monitor='loss'", "monitor='accuracy'", "monitor='val_loss'"))
    if rng.random() < 0.7 and not any("mode" in each for each in given):
        given.append(rng.choice(("mode='min'", "mode='min'", "mode='max'")))
    text = str(values).replace("nan", "float('nan')")
    before = (
        f"{_HELPERS}def run():\n    stop = keras.callbacks.EarlyStopping({', '.join(given)})\n"
        f"    found = model.fit(x, x, epochs=6, verbose=0, callbacks=[tools.given({text}), stop])\n"
        "    state = tools.state(stop, 'stopped_epoch', 'wait', 'best', 'best_epoch')\n"
        "    return found.epoch, state, model.get_weights()\n"
    )
    return Call("run()", [], CLOSE, (), before)


@FAMILY.of("keras.callbacks.LearningRateScheduler keras.callbacks.LambdaCallback")
def others(function: str, rng: random.Random) -> Call:
    """Callbacks for learning rates, histories and lambda functions."""
    name = function.rpartition(".")[2]
    if name == "LearningRateScheduler":
        schedule = rng.choice(
            (
                "lambda epoch: 0.1 / (epoch + 1)",
                "lambda epoch, rate: rate * 0.5",
                "lambda epoch: 1",
                "lambda epoch: np.float32(0.25)",
                "lambda epoch, rate: rate",
                "lambda epoch: 'x'",
                "lambda epoch: tf.constant(0.1)",
                "lambda a, b, c: 0.1",
            )
        )
        callback = f"keras.callbacks.LearningRateScheduler({schedule})"
    else:
        hook = rng.choice(
            ("on_epoch_end", "on_epoch_begin", "on_train_begin", "on_train_end", "on_train_batch_end")
        )
        arguments = "logs" if "train_" in hook and "batch" not in hook else "number, logs"
        callback = (
            f"keras.callbacks.LambdaCallback({hook}=lambda {arguments}: seen.append(sorted(logs or ())))"
        )
    callbacks = rng.choice(("[{}]", "{}")).format(callback)
    label = rng.choice(("x", "x", "x * 2", "x * np.nan", "x * np.inf"))
    before = (
        f"{_HELPERS}seen = []\ndef run():\n"
        "    model.compile(keras.optimizers.SGD(0.5), 'mse', run_eagerly=True)\n"
        f"    found = model.fit(x, {label}, batch_size=1, epochs=3, verbose=0, callbacks={callbacks})\n"
        "    rate = np.asarray(model.optimizer.learning_rate)\n"
        "    return tools.figures(found), found.epoch, seen, rate, model.get_weights()\n"
    )
    return Call("run()", [], Tolerance(500, 100), (), before)


@FAMILY.of("keras.callbacks.Callback")
def hooks(function: str, rng: random.Random) -> Call:
    """The order of all hooks' calls, and the contents of ``params`` and ``logs``."""
    run = rng.choice(
        (
            "model.fit(x, x, batch_size=1, epochs=2, verbose=0, callbacks=[tools.recorder(seen)])",
            "model.fit(x, x, epochs=2, verbose=0, validation_data=(x, x), callbacks=[tools.recorder(seen)])",
            "model.fit(x, x, epochs=3, initial_epoch=1, verbose=0, callbacks=[tools.recorder(seen)])",
            "model.fit(x[[0] * 5], x[[0] * 5], batch_size=1, epochs=2, verbose=0, callbacks=[tools.recorder(seen)])",
            "model.evaluate(x, x, batch_size=1, verbose=0, callbacks=[tools.recorder(seen)])",
            "model.predict(x, batch_size=1, verbose=0, callbacks=[tools.recorder(seen)])",
            "model.fit(x, x, epochs=2, verbose=0, callbacks=[tools.recorder(seen), 3])",
            "model.fit(x, x, epochs=4, verbose=0, callbacks=[tools.recorder(seen, stop=1)])",
            "model.fit(x, x, epochs=2, batch_size=1, verbose=0, callbacks=[tools.recorder(seen, stop_batch=0)])",
        )
    )
    together = rng.choice(("", "", ", steps_per_execution=2", ", steps_per_execution=5"))
    before = (
        f"{_HELPERS}seen = []\n"
        f"model.compile(keras.optimizers.SGD(0.0), 'mse', run_eagerly=True{together})\n"
        f"def run():\n    {run}\n    return seen\n"
    )
    return Call("run()", [], CLOSE, (), before)
