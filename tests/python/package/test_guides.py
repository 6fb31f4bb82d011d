"""Programs as guides to TensorFlow have them, over several simulated GPUs: each uses what its topic is taught with."""

from support.tf.replicas import run


def test_a_custom_loop_with_metrics_and_a_checkpoint_goes_on_without_the_strategy() -> None:
    """Training in steps of ``run``, losses scaled by hand; another model reads the checkpoint and agrees."""
    run(
        """
        import os, tempfile
        rng = np.random.default_rng(5)
        pictures = rng.uniform(size=(48, 8, 8, 1)).astype(np.float32)
        kinds = (pictures.mean(axis=(1, 2, 3)) > 0.5).astype(np.int64)

        def network():
            keep_small = tf.keras.regularizers.L2(1e-4)
            return tf.keras.Sequential([
                tf.keras.layers.Conv2D(4, 3, activation="relu", kernel_regularizer=keep_small),
                tf.keras.layers.MaxPooling2D(),
                tf.keras.layers.Flatten(),
                tf.keras.layers.Dense(2, kernel_regularizer=keep_small),
            ])

        strategy = tf.distribute.MirroredStrategy()
        assert strategy.num_replicas_in_sync == 4
        batches = tf.data.Dataset.from_tensor_slices((pictures, kinds)).batch(16)
        spread = strategy.experimental_distribute_dataset(batches)
        with strategy.scope():
            losses = tf.keras.losses.SparseCategoricalCrossentropy(
                from_logits=True, reduction=tf.keras.losses.Reduction.NONE
            )
            hits = tf.keras.metrics.SparseCategoricalAccuracy(name="hits")
            mean = tf.keras.metrics.Mean(name="mean")
            model, optimizer = network(), tf.keras.optimizers.Adam(0.02)
            saved = tf.train.Checkpoint(model=model, optimizer=optimizer)

        def step(batch):
            x, y = batch
            with tf.GradientTape() as tape:
                logits = model(x, training=True)
                loss = tf.nn.compute_average_loss(losses(y, logits))
                loss += tf.nn.scale_regularization_loss(tf.add_n(model.losses))
            found = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(found, model.trainable_variables))
            hits.update_state(y, logits)
            mean.update_state(losses(y, logits))
            return loss

        @tf.function
        def epoch(data):
            total = 0.0
            for batch in data:
                parts = strategy.run(step, args=(batch,))
                total += strategy.reduce(tf.distribute.ReduceOp.SUM, parts, axis=None)
            return total

        first = epoch(spread)
        # The weights of the last step were not those that the metric saw.
        hits.reset_states(); mean.reset_state()
        for _ in range(6):
            last = epoch(spread)
        assert float(last) < float(first)
        assert 0.5 < float(hits.result()) <= 1.0 and 0.0 < float(mean.result()) < 1.0
        hits.reset_states(); mean.reset_state()
        assert float(hits.result()) == 0.0 and float(mean.result()) == 0.0

        folder = tempfile.mkdtemp()
        saved.save(os.path.join(folder, "steps"))
        other, rest = network(), tf.keras.optimizers.Adam()
        tf.train.Checkpoint(model=other, optimizer=rest).restore(tf.train.latest_checkpoint(folder))
        wanted = model(tf.constant(pictures)).numpy()
        assert np.allclose(other(tf.constant(pictures)).numpy(), wanted, atol=1e-5)
        """,
        gpus="4:32MiB",
    )


def test_input_in_every_form_reaches_each_replica_once() -> None:
    """Data sets divided, made by a function, generated, of unknown end; signatures; values made for each replica."""
    run(
        """
        strategy = tf.distribute.MirroredStrategy()
        local = strategy.experimental_local_results

        pairs = tf.data.Dataset.from_tensors(([2.0], [3.0])).repeat(20).batch(8)
        options = tf.data.Options()
        options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
        spread = strategy.experimental_distribute_dataset(pairs.with_options(options))

        @tf.function(input_signature=[spread.element_spec])
        def doubled(batch):
            return strategy.run(lambda pair: pair[0] * pair[1], args=(batch,))

        sizes = []
        for batch in spread:
            parts = local(doubled(batch))
            assert all((part.numpy() == 6.0).all() for part in parts)
            sizes.append([int(part.shape[0]) for part in parts])
        assert sizes == [[4, 4], [4, 4], [2, 2]], sizes

        def made(context):
            size = context.get_per_replica_batch_size(8)
            numbers = tf.data.Dataset.range(16).shard(context.num_input_pipelines, context.input_pipeline_id)
            return numbers.batch(size).prefetch(2)

        batches = iter(strategy.distribute_datasets_from_function(made))
        seen = [part.numpy().tolist() for _ in range(2) for part in local(next(batches))]
        assert seen == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11], [12, 13, 14, 15]], seen

        @tf.function
        def until_the_end(batches):
            found = []
            for _ in tf.range(9):
                following = batches.get_next_as_optional()
                if not following.has_value():
                    break
                part = strategy.run(lambda x: tf.reduce_sum(x), args=(following.get_value(),))
                found.append(strategy.reduce("SUM", part, axis=None))
            return found

        nine = strategy.experimental_distribute_dataset(tf.data.Dataset.range(9).batch(4))
        assert [int(each) for each in until_the_end(iter(nine))] == [6, 22, 8]

        numbered = tf.data.Dataset.range(10, 22).enumerate().batch(6)
        found = {}
        for index, value in strategy.experimental_distribute_dataset(numbered):
            where, what = strategy.run(lambda i, x: (i, x * x), args=(index, value))
            for i, x in zip(local(where), local(what)):
                found.update(zip(i.numpy().tolist(), x.numpy().tolist()))
        assert found == {i: (10 + i) ** 2 for i in range(12)}

        own = strategy.experimental_distribute_values_from_function(
            lambda context: tf.constant(context.replica_id_in_sync_group * 5)
        )
        assert [int(each) for each in local(strategy.run(lambda x: x + 1, args=(own,)))] == [1, 6]

        def rows():
            while True:
                yield np.arange(3.0)

        endless = tf.data.Dataset.from_generator(rows, output_types=tf.float32, output_shapes=tf.TensorShape([3]))
        taken = next(iter(strategy.experimental_distribute_dataset(endless.batch(2))))
        assert [part.numpy().tolist() for part in local(taken)] == [[[0.0, 1.0, 2.0]]] * 2
        """
    )


def test_fit_under_a_strategy_with_schedules_and_weights_in_a_file() -> None:
    """Data mapped and cached, a rate for each epoch, a callback of one's own; the weights work without a strategy."""
    run(
        """
        import os, tempfile
        rng = np.random.default_rng(7)
        pictures = rng.integers(0, 256, (60, 6, 6, 1)).astype(np.uint8)
        kinds = (pictures.reshape(60, -1).mean(1) > 127).astype(np.int64)

        def small(x, y):
            return tf.cast(x, tf.float32) / 255, y

        data = tf.data.Dataset.from_tensor_slices((pictures, kinds)).map(small).cache()

        def network():
            return tf.keras.Sequential([
                tf.keras.layers.Conv2D(3, 3, activation="relu", input_shape=(6, 6, 1)),
                tf.keras.layers.MaxPooling2D(),
                tf.keras.layers.Flatten(),
                tf.keras.layers.Dense(8, activation="relu"),
                tf.keras.layers.Dense(2),
            ])

        def prepare(model):
            loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
            model.compile(tf.keras.optimizers.Adam(0.5), loss, metrics=["accuracy"])
            return model

        with tf.distribute.MirroredStrategy().scope():
            model = prepare(network())

        rates = []

        class Rates(tf.keras.callbacks.Callback):
            def on_epoch_end(self, epoch, logs=None):
                rates.append(float(self.model.optimizer.learning_rate.numpy()))

        falling = tf.keras.callbacks.LearningRateScheduler(lambda epoch: 0.02 if epoch < 2 else 0.005)
        history = model.fit(data.shuffle(60, seed=1).batch(16), epochs=4, callbacks=[falling, Rates()], verbose=0)
        assert np.allclose(rates, [0.02, 0.02, 0.005, 0.005]) and set(history.history) >= {"loss", "accuracy"}

        path = os.path.join(tempfile.mkdtemp(), "weights.npz")
        model.save_weights(path)
        alone = prepare(network())
        alone.load_weights(path)
        with_strategy, without = (each.evaluate(data.batch(16), verbose=0) for each in (model, alone))
        assert np.allclose(with_strategy, without, atol=1e-5), (with_strategy, without)

        shares = tf.keras.Sequential([alone, tf.keras.layers.Softmax()])(pictures[:5] / 255.0)
        assert np.allclose(shares.numpy().sum(1), 1.0)
        """
    )
