package relay

import (
	"context"
	"errors"
	"fmt"

	"gonbatch/kernel/wire"
)

// Died is the error of a session whose GoNB has ended unexpectedly.
type Died struct {
	// Reason is why, as far as it is known.
	Reason string
}

var _ error = (*Died)(nil)

func (d *Died) Error() string {
	return fmt.Sprintf("GoNB, which runs the cells, ended: %s. The session's declarations and %%keep values are lost: "+
		"restart the kernel, unless your client has done so, and run the cells again from the first", d.Reason)
}

// died answers the cell that ran when GoNB ended, and those waiting behind it, so that no client
// waits forever. If the kernel ends because a client wants it to, there is no answer.
func (e *execution) died(ctx context.Context, asked executeRequest) {
	var died *Died
	if !errors.As(context.Cause(ctx), &died) {
		return
	}
	e.relay.fail(e.request, asked, e.count, failure{"KernelDied", died.Error(), []string{e.title(0), red + died.Error() + plain}})
	e.relay.abort()
}

// fail answers a cell with a failure, without GoNB.
func (r *relay) fail(request *wire.Message, asked executeRequest, count int, f failure) {
	if !asked.Silent {
		r.publish(request, "error", f.content(""))
	}
	content := f.content("error")
	content["execution_count"] = count
	r.reply(r.front.shell, request, "execute_reply", content)
}
