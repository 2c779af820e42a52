"""Measure training cells in one session of the gonbatch kernel and print the seconds as JSON.

Usage: cells.py NOTEBOOK

NOTEBOOK is the MNIST notebook: all its cells run except main cells, such as the one that trains.

The measured cell trains for one step. It runs again unchanged, and with a change that makes it
compile again. Then a cell reads a kept model of 100 MB, and another doesn't.
"""

import json
import sys
import time

from jupyter_client.manager import start_new_kernel

TRAIN = """%%
world, err := distributed.Init()
check(err)
defer world.Close()
trainSet, _, err := mnist.Load(context.Background())
check(err)
accuracy := metric.NewSparseCategoricalAccuracy("Mean Accuracy", "#acc")
task := trainer.Supervised(digits, loss.SparseCategoricalCrossEntropyLogits, optimizer.Adam().LearningRate(*rate).Done(), accuracy)
t, err := trainer.New(world, trainer.Config{{MaxSteps: 1, BatchSize: *batchSize, Checkpoint: trainer.CheckpointConfig{{Off: true}}}}, task)
check(err)
check(t.Fit(context.Background(), trainSet, nil))
world.Printf("%d\\n", {i})"""

KEEP = """%keep kept
var kept = model.NewStore()
%%
for i := range 25 {
	kept.RootScope().In("layer_%d", i).VariableWithValue("weights", tensors.FromShape(shapes.Make(dtypes.Float32, 1000, 1000)))
}"""

READ = """%%
var sum float32
for i := range 25 {{
	if v := {store}.GetVariable(fmt.Sprintf("/layer_%d/weights", i)); v != nil {{
		tensors.MustConstFlatData(v.MustValue(), func(flat []float32) {{
			for i := 0; i < len(flat); i += 16 {{ // Once for each line of the processor's cache.
				sum += flat[i]
			}}
		}})
	}}
}}
fmt.Println(sum)"""


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        cells = ["".join(cell["source"]) for cell in json.load(file)["cells"] if cell["cell_type"] == "code"]
    manager, client = start_new_kernel(kernel_name="gonbatch", startup_timeout=300)

    def run(code):
        begin = time.perf_counter()
        reply = client.execute_interactive(code, output_hook=lambda message: None, timeout=600)["content"]
        assert reply["status"] == "ok", reply
        return time.perf_counter() - begin

    def median(codes):
        return sorted(map(run, codes))[2]

    try:
        for code in cells:
            if not code.startswith("%%"):
                run(code)
        run(TRAIN.format(i=0))
        changed = median(TRAIN.format(i=i) for i in range(1, 6))
        same = median([TRAIN.format(i=0)] * 5)
        run(KEEP)
        cells = [READ.format(store=store) for store in ["model.NewStore()", "kept"]]
        for code in cells:
            run(code)
        unread, read = [median([code] * 5) for code in cells]
        print(json.dumps({"changed": changed, "same": same, "unread": unread, "read": read}))
    finally:
        manager.shutdown_kernel()


main()
