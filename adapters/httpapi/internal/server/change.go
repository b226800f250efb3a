package server

import (
	"context"
	"net/http"

	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/wire"
)

// Change is a request of a team that was read and found well-formed, and that changes what is stored.
type Change struct {
	// Do makes the change and returns what is answered, as JSON; nil is an answer without a body. It
	// may be made by [OnceIn]. It
	// reads and writes the store alone, with the context that it gets, because it runs in a
	// transaction of the store and may run again: it sets anew whatever it sets. The ids of new persons
	// are made before, because their keys are made between two runs.
	Do func(context.Context) (any, error)
	// InParts, if it is set, takes the place of Do, for a change that is too large for one transaction. It
	// runs once, and hands each part of the change to within, which runs the part in a transaction, perhaps
	// again, with a line of the access log.
	InParts func(ctx context.Context, within func(context.Context, func(context.Context) error) error) (any, error)
	// Status is that of the answer. Default 200; without a body 204.
	Status int
	// Outside says that Do does more than that. It runs once and in no transaction.
	Outside bool
}

// Answer is an answer that is ready to be sent.
type Answer struct{ memoryWriter }

// Status returns the status.
func (a *Answer) Status() int { return a.status }

// Body returns the body.
func (a *Answer) Body() []byte { return a.body.Bytes() }

// Answer calls Do and returns the answer.
func (c *Change) Answer(ctx context.Context) (*Answer, error) {
	v, err := c.Do(ctx)
	if err != nil {
		return nil, err
	}
	a := &Answer{memoryWriter{header: http.Header{}}}
	kept, _ := v.(*keptAnswer)
	switch {
	case kept != nil:
		err = kept.send(a)
	case v == nil:
		err = wire.NoContent(a)
	case c.Status != 0:
		err = wire.JSON(a, c.Status, v)
	default:
		err = wire.JSON(a, http.StatusOK, v)
	}
	return a, err
}

// Send sends the answer.
func (a *Answer) Send(w http.ResponseWriter) error {
	for name, values := range a.header {
		w.Header()[name] = values
	}
	w.WriteHeader(a.status)
	if a.body.Len() > 0 {
		_, _ = w.Write(a.body.Bytes()) // the caller may have gone
	}
	return nil
}
