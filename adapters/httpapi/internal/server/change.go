package server

import (
	"context"
	"net/http"

	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/wire"
)

// Change is a valid request of a team that changes the store.
type Change struct {
	// Do makes the change and returns the answer as a JSON value; nil is an answer without a body. [OnceIn] returns such a
	// function. Do runs in a transaction and may run again, so it must only use the store, with the context that it gets.
	// Ids of new persons must be made before Do runs, because the encryption keys of persons are created between two runs.
	Do func(context.Context) (any, error)
	// InParts replaces Do for a change that is too large for one transaction. It runs once. It passes each part of the
	// change to within, which runs the part in a transaction with an access log entry, and may run it again.
	InParts func(ctx context.Context, within func(context.Context, func(context.Context) error) error) (any, error)
	// Status is the status of the answer. Default 200, or 204 without a body.
	Status int
	// Outside is true if Do has effects outside of the store. Do then runs once and without a transaction.
	Outside bool
}

// Answer is a complete answer in memory.
type Answer struct{ memoryWriter }

// Status returns the status.
func (a *Answer) Status() int { return a.status }

// Body returns the body.
func (a *Answer) Body() []byte { return a.body.Bytes() }

// Answer calls Do and returns the answer in memory.
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
