package httpapi

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/wire"
	"github.com/healthlab-dev/healthlab/orders"
)

// The headers of a request that is to be done once.
const (
	idempotencyKey   = "x-idempotency-key"
	idempotencyError = "x-idempotency-error"
	// noCache is the one value of idempotencyError: only successes are kept.
	noCache = "no-cache"
)

func (a api) placeOrder(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
	in := wire.From(r)
	var body orders.PlaceRequest
	in.Body(&body)
	once := onceFrom(in, r, team, "create_order")
	if err := in.ErrAnd(func() error { return body.Check(a.Orders.Today()) }); err != nil {
		return err
	}
	if err := body.Check(a.Orders.Today()); err != nil {
		return err
	}
	return a.answerOnce(w, r, once, body, nil, orderPlaced(func(ctx context.Context, id orders.OrderID) (orders.Order, error) {
		return a.Orders.PlaceAs(ctx, team, id, body)
	}))
}

func (a api) createOrder(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
	in := wire.From(r)
	var body orders.CreateRequest
	in.Body(&body)
	once := onceFrom(in, r, team, "create_or_replace_order")
	if err := in.ErrAnd(func() error { return body.Check(a.Orders.Today()) }); err != nil {
		return err
	}
	if err := body.Check(a.Orders.Today()); err != nil {
		return err
	}
	return a.answerOnce(w, r, once, body, nil, orderPlaced(func(ctx context.Context, id orders.OrderID) (orders.Order, error) {
		return a.Orders.Create(ctx, team, id, body)
	}))
}

func (a api) importOrder(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
	in := wire.From(r)
	var body orders.ImportRequest
	in.Body(&body)
	if err := in.ErrAnd(func() error { return body.Check(a.Orders.Today()) }); err != nil {
		return err
	}
	o, err := a.Orders.Import(r.Context(), team, body)
	return answerOrder(w, o, err, "order imported")
}

func (a api) createTestkit(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
	in := wire.From(r)
	var body orders.TestkitRequest
	in.Body(&body)
	if err := in.ErrAnd(body.Check); err != nil {
		return err
	}
	o, err := a.Orders.PlaceTestkit(r.Context(), team, body)
	return answerOrder(w, o, err, "kit ordered")
}

func (a api) registerTestkit(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
	in := wire.From(r)
	var body orders.RegisterRequest
	in.Body(&body)
	if err := in.ErrAnd(func() error { return body.Check(a.Orders.Today()) }); err != nil {
		return err
	}
	o, err := a.Orders.Register(r.Context(), team, body)
	return answerOrder(w, o, err, "kit registered")
}

// onceFrom reads what a request says about being done once; nil if it says nothing.
func onceFrom(in *wire.In, r *http.Request, team healthlab.TeamID, endpoint string) *orders.Once {
	key := in.OptHeader(idempotencyKey, 255)
	onError := in.OptHeader(idempotencyError, 255)
	if onError != "" && onError != noCache {
		in.Problem("enum", "is "+noCache+" or absent", "header", idempotencyError)
	}
	if key == "" {
		if len(r.Header.Values(idempotencyKey)) == 1 {
			in.Problem("string_length", "has 1 to 255 characters", "header", idempotencyKey)
		}
		return nil
	}
	return &orders.Once{
		KeyScope:    orders.KeyScope{Team: team, Endpoint: endpoint, Key: key},
		SuccessOnly: onError == noCache,
	}
}

// keptAnswer is a reply as it is kept for its idempotency key.
type keptAnswer struct {
	Status int `json:"status"`
	// Body is the reply's, byte for byte.
	Body []byte `json:"body"`
}

// orderPlaced makes what places an order something that is done once.
func orderPlaced(place func(context.Context, orders.OrderID) (orders.Order, error)) func(context.Context, orders.OrderID) (func(http.ResponseWriter) error, error) {
	return func(ctx context.Context, id orders.OrderID) (func(http.ResponseWriter) error, error) {
		o, err := place(ctx, id)
		return func(w http.ResponseWriter) error { return answerOrder(w, o, nil, "order placed") }, err
	}
}

// answerOnce does something and answers; with a key, what was answered the first time
// is answered every time, byte for byte. What is kept are successes, refusals by a rule of
// the business, and the failures that the operation has a reply of its own for; input that
// is not valid and failures of ours are not, so that the same key may try again.
func (a api) answerOnce(w http.ResponseWriter, r *http.Request, once *orders.Once, body any, replies []reply,
	do func(context.Context, orders.OrderID) (func(http.ResponseWriter) error, error),
) error {
	if once == nil {
		write, err := do(r.Context(), orders.OrderID{})
		if err != nil {
			return err
		}
		return write(w)
	}
	if a.OrderKeys == nil {
		return &wire.Fault{Status: http.StatusNotImplemented, Type: "IDEMPOTENCY_NOT_AVAILABLE", Msg: "this installation keeps no idempotency keys"}
	}
	text, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("fingerprint: %w", err)
	}
	sum := sha256.Sum256(text)
	once.Fingerprint = hex.EncodeToString(sum[:])
	kept, err := a.Orders.Once(r.Context(), a.OrderKeys, *once, func(ctx context.Context, id orders.OrderID) (orders.Outcome, error) {
		write, err := do(ctx, id)
		if err == nil {
			return outcome(false, write)
		}
		switch kind := healthlab.KindOf(err); {
		case kind == healthlab.NotFound, kind == healthlab.Precondition, kind == healthlab.Forbidden,
			slices.ContainsFunc(replies, func(r reply) bool { return r.answers(err) }):
			return outcome(true, func(w http.ResponseWriter) error { return wire.Refuse(w, faultOf(err, replies)) })
		}
		return orders.Outcome{}, err
	})
	if err != nil {
		return err
	}
	var answer keptAnswer
	if err := json.Unmarshal(kept, &answer); err != nil {
		return fmt.Errorf("read kept answer: %w", err)
	}
	return wire.Bytes(w, answer.Status, "application/json", answer.Body)
}

// outcome is what write answers, to be kept.
func outcome(failed bool, write func(http.ResponseWriter) error) (orders.Outcome, error) {
	rec := &recorder{header: http.Header{}}
	if err := write(rec); err != nil {
		return orders.Outcome{}, err
	}
	kept, err := json.Marshal(keptAnswer{Status: rec.status, Body: rec.body.Bytes()})
	if err != nil {
		return orders.Outcome{}, fmt.Errorf("keep answer: %w", err)
	}
	return orders.Outcome{Answer: kept, Failed: failed}, nil
}

// recorder takes an answer down.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) WriteHeader(status int)      { r.status = status }
func (r *recorder) Write(b []byte) (int, error) { return r.body.Write(b) }
