package relay

import "testing"

// TestInterruptor: nothing is interrupted before GoNB is ready.
func TestInterruptor(t *testing.T) {
	first, later := 0, 0
	r := &relay{ready: make(chan struct{}), opts: Options{Interrupt: func() func() { first++; return func() { later++ } }, Settle: func() {}}}
	interrupt := r.interruptor()
	interrupt()
	if first+later != 0 {
		t.Errorf("interrupted %d times before GoNB is ready", first+later)
	}
	r.interrupt()
	if first+later != 0 {
		t.Errorf("a client interrupted %d times before GoNB is ready", first+later)
	}
	close(r.ready)
	for range 3 {
		interrupt()
	}
	if first != 1 || later != 2 {
		t.Errorf("interrupted %d times, and %d times again", first, later)
	}
}
