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

// The headers of a request with an idempotency key.
const (
	idempotencyKey   = "x-idempotency-key"
	idempotencyError = "x-idempotency-error"
	// noCache is the only value of idempotencyError: only successes are stored.
	noCache = "no-cache"
)

func (a api) placeOrder(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
	in := wire.From(r)
	var body orders.PlaceRequest
	in.Body(&body)
	once := onceFrom(in, r, team, "create_order", body.UserID)
	if err := in.ErrAnd(func() error { return body.Check(a.Orders.Today()) }); err != nil {
		return err
	}
	if err := body.Check(a.Orders.Today()); err != nil {
		return err
	}
	return a.answerOnce(w, r, once, body, nil, orderAnswered("order placed", func(ctx context.Context, id orders.OrderID) (orders.Order, error) {
		return a.Orders.PlaceAs(ctx, team, id, body)
	}))
}

func (a api) createOrder(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
	in := wire.From(r)
	var body orders.CreateRequest
	in.Body(&body)
	once := onceFrom(in, r, team, "create_or_replace_order", body.UserID)
	if err := in.ErrAnd(func() error { return body.Check(a.Orders.Today()) }); err != nil {
		return err
	}
	if err := body.Check(a.Orders.Today()); err != nil {
		return err
	}
	return a.answerOnce(w, r, once, body, nil, orderAnswered("order placed", func(ctx context.Context, id orders.OrderID) (orders.Order, error) {
		return a.Orders.Create(ctx, team, id, body)
	}))
}

func (a api) importOrder(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
	in := wire.From(r)
	var body orders.ImportRequest
	in.Body(&body)
	once := onceFrom(in, r, team, "import_order", body.UserID)
	if err := in.ErrAnd(func() error { return body.Check(a.Orders.Today()) }); err != nil {
		return err
	}
	return a.answerOnce(w, r, once, body, nil, orderAnswered("order imported", func(ctx context.Context, id orders.OrderID) (orders.Order, error) {
		return a.Orders.ImportAs(ctx, team, id, body)
	}))
}

func (a api) createTestkit(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
	in := wire.From(r)
	var body orders.TestkitRequest
	in.Body(&body)
	once := onceFrom(in, r, team, "create_testkit_order", body.UserID)
	if err := in.ErrAnd(body.Check); err != nil {
		return err
	}
	return a.answerOnce(w, r, once, body, nil, orderAnswered("kit ordered", func(ctx context.Context, id orders.OrderID) (orders.Order, error) {
		return a.Orders.PlaceTestkitAs(ctx, team, id, body)
	}))
}

func (a api) registerTestkit(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
	in := wire.From(r)
	var body orders.RegisterRequest
	in.Body(&body)
	var user healthlab.UserID
	if body.UserID != nil {
		user = *body.UserID
	}
	once := onceFrom(in, r, team, "register_testkit", user)
	if err := in.ErrAnd(func() error { return body.Check(a.Orders.Today()) }); err != nil {
		return err
	}
	return a.answerOnce(w, r, once, body, nil, orderAnswered("kit registered", func(ctx context.Context, _ orders.OrderID) (orders.Order, error) {
		return a.Orders.Register(ctx, team, body)
	}))
}

// onceFrom reads the idempotency headers of a request; nil without a key. endpoint is the
// scope of the key: the operation and the ids in its path. user is whom the answer is about;
// zero for the order's user, or none.
func onceFrom(in *wire.In, r *http.Request, team healthlab.TeamID, endpoint string, user healthlab.UserID) *orders.Once {
	key := in.OptHeader(idempotencyKey, 255)
	onError := in.OptHeader(idempotencyError, 255)
	if onError != "" && onError != noCache {
		in.Problem("enum", "must be "+noCache, "header", idempotencyError)
	}
	if key == "" {
		if len(r.Header.Values(idempotencyKey)) == 1 {
			in.Problem("string_length", "must have 1 to 255 characters", "header", idempotencyKey)
		}
		return nil
	}
	return &orders.Once{
		KeyScope:    orders.KeyScope{Team: team, Endpoint: endpoint, Key: key},
		User:        user,
		SuccessOnly: onError == noCache,
	}
}

// keptAnswer is an answer as stored for its idempotency key.
type keptAnswer struct {
	Status int `json:"status"`
	// Body is the body, byte for byte.
	Body []byte `json:"body"`
}

// createFunc runs a request and returns the function that writes its answer. The id is the
// one that the idempotency key reserves for a new order; it is zero without a key.
type createFunc func(context.Context, orders.OrderID) (write func(http.ResponseWriter) error, err error)

// orderAnswered returns a createFunc that answers with the order that create returns.
func orderAnswered(message string, create func(context.Context, orders.OrderID) (orders.Order, error)) createFunc {
	return func(ctx context.Context, id orders.OrderID) (func(http.ResponseWriter) error, error) {
		o, err := create(ctx, id)
		return func(w http.ResponseWriter) error { return answerOrder(w, o, nil, message) }, err
	}
}

// answered returns a createFunc that answers 200 with the value that create returns.
func answered[T any](create func(context.Context) (T, error)) createFunc {
	return func(ctx context.Context, _ orders.OrderID) (func(http.ResponseWriter) error, error) {
		v, err := create(ctx)
		return func(w http.ResponseWriter) error { return wire.JSON(w, http.StatusOK, v) }, err
	}
}

// answerOnce runs do and writes its answer. With an idempotency key, the first answer is
// stored and repeated byte for byte; the same key with another body is refused with
// IDEMPOTENCY_KEY_REUSED. Stored answers are successes and 4xx answers to business rules.
// Invalid input, lost races and 5xx answers are not stored: the same key runs do again.
// body identifies the request: equal requests have equal JSON.
func (a api) answerOnce(w http.ResponseWriter, r *http.Request, once *orders.Once, body any, replies []reply, do createFunc) error {
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
			slices.ContainsFunc(replies, func(r reply) bool { return r.answers(err) && r.status < http.StatusInternalServerError }):
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

// outcome records the answer that write writes.
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

// recorder is a ResponseWriter in memory.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) WriteHeader(status int)      { r.status = status }
func (r *recorder) Write(b []byte) (int, error) { return r.body.Write(b) }
