package trainer

import "gonbatch/distributed"

func progress(w *distributed.World, step int64) {
	if w, ok := any(w).(interface{ Progress(int64) }); ok {
		w.Progress(step)
	}
}

func abort(w *distributed.World, err error) {
	if w, ok := any(w).(interface{ Abort(error) }); ok {
		w.Abort(err)
	}
}
