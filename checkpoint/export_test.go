package checkpoint

// Busy reports whether a snapshot is being written, so that Save would wait.
func (w *Writer) Busy() bool {
	if !w.mu.TryLock() {
		return true
	}
	defer w.mu.Unlock()
	return w.last != nil && len(w.last) == 0
}
