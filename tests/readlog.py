"""Read what a logger wrote with the format's own reader, and print it as JSON.

Usage: readlog.py READER PATH [RUN]
"""

import base64
import csv
import io
import json
import sys


def tensorboard(folder):
    from PIL import Image
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.plugins.hparams import metadata

    # 0 keeps every record. By default, the reader keeps a sample.
    limits = {"scalars": 0, "images": 0, "histograms": 0, "tensors": 0}
    events = EventAccumulator(folder, size_guidance=limits)
    events.Reload()
    hparams = {}
    content = events.PluginTagToContent(metadata.PLUGIN_NAME)[metadata.SESSION_START_INFO_TAG]
    for name, value in metadata.parse_session_start_info_plugin_data(content).hparams.items():
        hparams[name] = getattr(value, value.WhichOneof("kind"))
    metadata.parse_session_end_info_plugin_data(events.PluginTagToContent(metadata.PLUGIN_NAME)[metadata.SESSION_END_INFO_TAG])
    images = {}
    for tag in events.Tags()["images"]:
        images[tag] = []
        for event in events.Images(tag):
            image = Image.open(io.BytesIO(event.encoded_image_string)).convert("RGB")
            assert image.size == (event.width, event.height), (image.size, event.width, event.height)
            images[tag].append({"step": event.step, "size": image.size, "first": image.getpixel((0, 0))})
    return {
        "scalars": {tag: [[e.step, repr(e.value)] for e in events.Scalars(tag)] for tag in events.Tags()["scalars"]},
        "images": images,
        "histograms": {
            tag: [[e.step, e.histogram_value.num, sum(e.histogram_value.bucket), e.histogram_value.sum] for e in events.Histograms(tag)]
            for tag in events.Tags()["histograms"]
        },
        "hparams": hparams,
    }


def mlflow(uri, run_id):
    from mlflow.tracking import MlflowClient

    client = MlflowClient(tracking_uri=uri)
    run = client.get_run(run_id)
    artifacts = {}

    def walk(path):
        for item in client.list_artifacts(run_id, path):
            if item.is_dir:
                walk(item.path)
            else:
                with open(client.download_artifacts(run_id, item.path), "rb") as f:
                    artifacts[item.path] = base64.b64encode(f.read()).decode()

    walk("")
    return {
        "experiment": client.get_experiment(run.info.experiment_id).name,
        "status": run.info.status,
        "name": run.info.run_name,
        "params": run.data.params,
        "metrics": {name: [[m.step, repr(m.value)] for m in client.get_metric_history(run_id, name)] for name in run.data.metrics},
        "artifacts": artifacts,
        "runs": [r.info.run_id for r in client.search_runs([run.info.experiment_id])],
    }


def model(uri, run_id):
    import mlflow
    from safetensors import safe_open

    mlflow.set_tracking_uri(uri)
    info = mlflow.models.get_model_info(f"runs:/{run_id}/model")
    folder = mlflow.artifacts.download_artifacts(f"runs:/{run_id}/model")
    with safe_open(f"{folder}/{info.flavors['safetensors']['data']}", framework="numpy") as f:
        tensors = {name: f.get_slice(name).get_shape() for name in f.keys()}
    return {"flavors": info.flavors, "run": info.run_id, "path": info.artifact_path, "tensors": tensors}


TEXTS = ("time", "training")


def table(path):
    with open(path, newline="") as f:
        return [
            {name: repr(float(cell)) for name, cell in row.items() if name not in TEXTS and cell != ""} for row in csv.DictReader(f, strict=True)
        ]


def lines(path):
    with open(path) as f:
        return [{name: repr(float(x)) for name, x in json.loads(line).items() if name not in TEXTS} for line in f]


readers = {"tensorboard": tensorboard, "mlflow": mlflow, "model": model, "csv": table, "jsonlines": lines}
json.dump(readers[sys.argv[1]](*sys.argv[2:]), sys.stdout)
