package relay

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"gonbatch/kernel/wire"
)

// Refuse serves the clients of a kernel that could not start: each cell fails with the reason. It
// ends as Run does.
func Refuse(ctx context.Context, front Connection, reason error, log io.Writer) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	all := newQueue()
	r := &relay{opts: Options{Front: front, Log: log, Settle: func() {}}, queue: all, questions: all, stop: cancel}
	if r.front, err = listen(front, r.log); err != nil {
		return fmt.Errorf("listen for clients: %w", err)
	}
	defer r.front.close()
	go r.front.shell.receive(ctx, r.onShell, r.log)
	go r.front.control.receive(ctx, r.onControl, r.log)
	for {
		m := r.queue.next(ctx)
		if m == nil {
			return nil
		}
		r.refuse(m, reason)
	}
}

// refuse answers a request that would need GoNB with the reason why there is none.
func (r *relay) refuse(m *wire.Message, reason error) {
	f := failure{"KernelNotStarted", reason.Error(), []string{red + "The kernel could not start: " + reason.Error() + plain, "Fix this, then restart the kernel."}}
	switch m.Header.Type {
	case "execute_request":
		r.setRunning(m)
		defer r.setIdle(m)
		var asked executeRequest
		_ = json.Unmarshal(m.Content, &asked) // The answer is the same.
		r.fail(m, asked, 0, f)
		r.abort()
	case "complete_request", "inspect_request":
		r.status(m, "busy")
		defer r.setIdle(m)
		r.reply(r.front.shell, m, strings.Replace(m.Header.Type, "_request", "_reply", 1), f.content("error"))
	default:
		r.answer(r.front.shell, m)
	}
}
