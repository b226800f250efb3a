package server

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/wire"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/idempotency"
)

// Names of the idempotency headers of a request.
const (
	IdempotencyKey   = "x-idempotency-key"
	IdempotencyError = "x-idempotency-error"
	// noCache is the only allowed value of the header IdempotencyError. It means that errors are not stored.
	noCache = "no-cache"
)

// OnceFrom reads the idempotency headers of a request. It returns nil without a key. endpoint is the scope in which
// the key must be unique: the operation and the ids in its path. user is the user whom the answer concerns; zero
// means the user of the order, or none.
func OnceFrom(in *wire.In, team healthlab.TeamID, endpoint string, user healthlab.UserID) *idempotency.Request {
	key := in.OptHeader(IdempotencyKey, 255)
	onError := in.OptHeader(IdempotencyError, 255)
	if onError != "" && onError != noCache {
		in.Problem("enum", "must be "+noCache, "header", IdempotencyError)
	}
	if key == "" {
		if len(in.Request().Header.Values(IdempotencyKey)) == 1 {
			in.Problem("string_length", "must have 1 to 255 characters", "header", IdempotencyKey)
		}
		return nil
	}
	if own := in.Own(); !own.IsZero() {
		endpoint += " of " + own.String() // equal keys of two users are different keys
	}
	return &idempotency.Request{
		Scope:       idempotency.Scope{Team: team, Endpoint: endpoint, Key: key},
		User:        user,
		SuccessOnly: onError == noCache,
	}
}

// keptAnswer is an answer as it is stored for an idempotency key.
type keptAnswer struct {
	Status int `json:"status"`
	// Body is the body, byte for byte.
	Body []byte `json:"body"`
}

func (k *keptAnswer) send(w http.ResponseWriter) error {
	return wire.Bytes(w, k.Status, "application/json", k.Body)
}

// CreateFunc runs a request and returns a function that writes the answer. The OrderID is reserved by the idempotency
// key for a new order; it is zero without a key.
type CreateFunc func(context.Context, orders.OrderID) (write func(http.ResponseWriter) error, err error)

// Answered returns a CreateFunc that answers 200 with the value that create returns.
func Answered[T any](create func(context.Context) (T, error)) CreateFunc {
	return func(ctx context.Context, _ orders.OrderID) (func(http.ResponseWriter) error, error) {
		v, err := create(ctx)
		return func(w http.ResponseWriter) error { return wire.JSON(w, http.StatusOK, v) }, err
	}
}

// AnswerOnce runs do and writes its answer. With an idempotency key, the first answer is
// stored and repeated byte for byte; the same key with another body is refused with
// IDEMPOTENCY_KEY_REUSED. Stored answers are successes and 4xx answers to business rules.
// Invalid input, lost races and 5xx answers are not stored: the same key runs do again. Nor is an answer about a user
// who does not exist, such as the 404 for an unknown user_id: the user may have been erased.
// body identifies the request: equal requests have equal JSON. If requests is nil, a request with
// a key is refused (501).
func AnswerOnce(requests *idempotency.Service, w http.ResponseWriter, r *http.Request, once *idempotency.Request, body any, do CreateFunc) error {
	if once == nil {
		write, err := do(r.Context(), orders.OrderID{})
		if err != nil {
			return err
		}
		return write(w)
	}
	answer, err := answerOnce(r.Context(), requests, (*idempotency.Service).Once, once, body, do)
	if err != nil {
		return err
	}
	return answer.send(w)
}

// OnceIn returns the Do of a [Change] that answers 200 with the value that do returns. With an idempotency key it
// answers as [AnswerOnce]: the answer is stored in the transaction of the change. within runs a function in that
// transaction, and rolls back what a function that failed has written; nil runs the function directly.
func OnceIn(requests *idempotency.Service, within func(context.Context, func(context.Context) error) error, once *idempotency.Request, body any, do func(context.Context, orders.OrderID) (any, error)) func(context.Context) (any, error) {
	if once == nil {
		return func(ctx context.Context) (any, error) { return do(ctx, orders.OrderID{}) }
	}
	return func(ctx context.Context) (any, error) {
		ask := (*idempotency.Service).Once
		if within != nil {
			ask = (*idempotency.Service).OnceIn
		}
		return answerOnce(ctx, requests, ask, once, body, func(ctx context.Context, id orders.OrderID) (func(http.ResponseWriter) error, error) {
			var v any
			run := func(ctx context.Context) (err error) {
				v, err = do(ctx, id)
				return err
			}
			var err error
			if within == nil {
				err = run(ctx)
			} else {
				err = within(ctx, run)
			}
			return func(w http.ResponseWriter) error { return wire.JSON(w, http.StatusOK, v) }, err
		})
	}
}

// askOnce is the signature of the methods of idempotency.Service that run a request at most once.
type askOnce func(*idempotency.Service, context.Context, idempotency.Request, func(context.Context, orders.OrderID) (idempotency.Outcome, error)) ([]byte, error)

// answerOnce runs do, or returns the stored answer of the idempotency key. ask is the method that stores the answer.
func answerOnce(ctx context.Context, requests *idempotency.Service, ask askOnce, once *idempotency.Request, body any, do CreateFunc) (*keptAnswer, error) {
	if requests == nil {
		return nil, &wire.Fault{Status: http.StatusNotImplemented, Type: "IDEMPOTENCY_NOT_AVAILABLE", Msg: "this deployment does not support idempotency keys"}
	}
	text, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("compute fingerprint of request: %w", err)
	}
	sum := sha256.Sum256(text)
	once.Fingerprint = hex.EncodeToString(sum[:])
	kept, err := ask(requests, ctx, *once, func(ctx context.Context, id orders.OrderID) (idempotency.Outcome, error) {
		write, err := do(ctx, id)
		if err == nil {
			return outcome(false, write)
		}
		switch healthlab.KindOf(err) {
		case healthlab.NotFound, healthlab.Precondition, healthlab.Forbidden:
			return outcome(true, func(w http.ResponseWriter) error { return wire.Refuse(w, FaultOf(err, nil)) })
		}
		return idempotency.Outcome{}, err
	})
	if err != nil {
		return nil, err
	}
	answer := &keptAnswer{}
	if err := json.Unmarshal(kept, answer); err != nil {
		return nil, fmt.Errorf("decode stored answer: %w", err)
	}
	return answer, nil
}

// outcome calls write, and returns the written answer as the outcome to store. failed is true for an error answer.
func outcome(failed bool, write func(http.ResponseWriter) error) (idempotency.Outcome, error) {
	rec := &memoryWriter{header: http.Header{}}
	if err := write(rec); err != nil {
		return idempotency.Outcome{}, err
	}
	kept, err := json.Marshal(keptAnswer{Status: rec.status, Body: rec.body.Bytes()})
	if err != nil {
		return idempotency.Outcome{}, fmt.Errorf("encode answer to store: %w", err)
	}
	return idempotency.Outcome{Answer: kept, Failed: failed}, nil
}

// memoryWriter is a ResponseWriter in memory.
type memoryWriter struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (r *memoryWriter) Header() http.Header         { return r.header }
func (r *memoryWriter) WriteHeader(status int)      { r.status = status }
func (r *memoryWriter) Write(b []byte) (int, error) { return r.body.Write(b) }
