package relay

import (
	"context"
	"errors"
	"fmt"

	"gonbatch/kernel/wire"
)

// Died says that GoNB has ended, though nobody asked it to.
type Died struct {
	// Reason is what is known of why.
	Reason string
}

var _ error = (*Died)(nil)

func (d *Died) Error() string {
	return fmt.Sprintf("GoNB, which runs the cells, ended: %s. With it the session's declarations and the values of %%keep are gone: "+
		"restart the kernel, unless your client has done so, and run the cells again from the first", d.Reason)
}

// died answers the cell that ran when GoNB ended, and those that wait behind it: no client waits
// for ever. When the kernel ends because a client wants that, there is no answer.
func (e *execution) died(ctx context.Context, asked executeRequest) {
	var died *Died
	if !errors.As(context.Cause(ctx), &died) {
		return
	}
	e.relay.fail(e.request, asked, e.count, failure{"KernelDied", died.Error(), []string{e.title(0), red + died.Error() + plain}})
	e.relay.abort()
}

// fail answers a cell that GoNB can't.
func (r *relay) fail(request *wire.Message, asked executeRequest, count int, f failure) {
	if !asked.Silent {
		r.publish(request, "error", f.content(""))
	}
	content := f.content("error")
	content["execution_count"] = count
	r.reply(r.front.shell, request, "execute_reply", content)
}
