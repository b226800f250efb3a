package httpapi_test

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/contract"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/idempotency"
)

func (c *fixture) count() int {
	c.t.Helper()
	var page struct{ Total int }
	c.get("/v3/orders", 200).JSON(c.t, &page)
	return page.Total
}

func TestIdempotencyKey_repeatedOrderIsPlacedOnce(t *testing.T) {
	for _, path := range []string{"/v3/order", "/v3/order/create"} {
		c := newFixture(t, nil)
		keyed := c.With("x-idempotency-key", "k-1")
		first := keyed.Send(t, "POST", path, c.request(walkInTest, nil)).Want(t, 200)
		again := keyed.Send(t, "POST", path, c.request(walkInTest, nil)).Want(t, 200)
		require.Equal(t, string(first.Body), string(again.Body))
		require.Equal(t, first.Header.Get("Content-Type"), again.Header.Get("Content-Type"))
		require.Equal(t, orders.IdempotencyKeyReused, keyed.Send(t, "POST", path, c.request(kitTest, nil)).Want(t, 409).ErrorType(t))
		require.Equal(t, 1, c.count())

		c.With("x-idempotency-key", "K-1").Send(t, "POST", path, c.request(walkInTest, nil)).Want(t, 200)
		c.placed()
		require.Equal(t, 3, c.count())
		// The answer stays as it was, whatever became of the order.
		var o orderAnswer
		first.JSON(t, &o)
		c.order("POST", "/v3/order/"+o.Order.ID.String()+"/cancel", nil)
		require.Equal(t, string(first.Body), string(keyed.Send(t, "POST", path, c.request(walkInTest, nil)).Want(t, 200).Body))
	}
}

// Every operation that creates something takes an idempotency key: a repeated request with
// the same body gets the first answer, one with another body is refused, and neither creates
// anything.
func TestIdempotencyKey_isAcceptedByEveryCreatingOperation(t *testing.T) {
	c := newFixture(t, nil)
	c.Send(t, "PATCH", c.about("info"), anInfo(nil)).Want(t, 200)
	slots := c.keys("phlebotomy")
	booking := "/v3/order/" + c.accepted(atHomeTest, nil).ID.String() + "/phlebotomy/appointment/book"
	payor := func(name string) object {
		return object{"name": name, "address": object{"first_line": "9 Own Way", "city": "Duluth", "state": "MN", "zip": "55802", "country": "US"}}
	}
	for path, bodies := range map[string][2]object{
		"/v3/order/testkit":  {c.aKit(), object{"user_id": c.user.String(), "lab_test_id": kitTest, "shipping_details": c.aKit()["shipping_details"], "passthrough": "x"}},
		"/v3/order/import":   {c.anImport(walkInTest, "s-1"), c.anImport(walkInTest, "s-2")},
		c.about("insurance"): {anInsurance(nil), anInsurance(object{"member_id": "other"})},
		"/v3/payor":          {payor("Elm Mutual"), payor("Oak Mutual")},
		"/v3/lab_tests":      {own("First", nil), own("Second", nil)},
		booking:              {object{"booking_key": slots[0]}, object{"booking_key": slots[1]}},
	} {
		t.Run(path, func(t *testing.T) {
			keyed := c.With("x-idempotency-key", "k")
			first := keyed.Send(t, "POST", path, bodies[0]).Want(t, 200)
			require.Equal(t, string(first.Body), string(keyed.Send(t, "POST", path, bodies[0]).Want(t, 200).Body))
			require.Equal(t, orders.IdempotencyKeyReused, keyed.Send(t, "POST", path, bodies[1]).Want(t, 409).ErrorType(t))
		})
	}
}

// An operation without idempotency refuses a request with an idempotency key, because its
// caller relies on the key.
func TestIdempotencyKey_isRefusedByOperationsWithoutIdempotency(t *testing.T) {
	c := newFixture(t, nil)
	for _, header := range []string{"x-idempotency-key", "x-idempotency-error"} {
		keyed := c.With(header, "k")
		require.Equal(t, []string{"header." + header}, keyed.Send(t, "GET", "/v3/orders", nil).Want(t, 422).Locs(t))
		require.Equal(t, []string{"header." + header}, keyed.Send(t, "POST", "/v2/user", object{"client_user_id": "one"}).Want(t, 422).Locs(t))
	}
}

func TestIdempotencyKey_belongsToItsTeamAndEndpoint(t *testing.T) {
	c := newFixture(t, nil)
	keyed := c.With("x-idempotency-key", "k-1")
	keyed.Send(t, "POST", "/v3/order", c.request(walkInTest, nil)).Want(t, 200)
	keyed.Send(t, "POST", "/v3/order/create", c.request(walkInTest, nil)).Want(t, 200)
	require.Equal(t, 2, c.count())
	other := keyed.With("x-service-api-key", "other")
	reply := other.Send(t, "POST", "/v3/order", c.request(walkInTest, object{"user_id": c.foreign.String()}))
	require.Equal(t, catalogue.NoActiveLabAccount, reply.Want(t, 400).ErrorType(t), "the other team got its own answer")
}

func TestIdempotencyKey_replaysABusinessRuleError(t *testing.T) {
	c := newFixture(t, nil)
	keyed := c.With("x-idempotency-key", "k-1")
	minor := aPatient()
	minor["dob"] = "2015-01-01"
	first := keyed.Send(t, "POST", "/v3/order", c.request(walkInTest, object{"patient_details": minor})).Want(t, 400)
	again := keyed.Send(t, "POST", "/v3/order", c.request(walkInTest, object{"patient_details": minor})).Want(t, 400)
	require.Equal(t, string(first.Body), string(again.Body))
	keyed.Send(t, "POST", "/v3/order", c.request(walkInTest, nil)).Want(t, 409)
	require.Zero(t, c.count())
	missing := keyed.With("x-idempotency-key", "k-2")
	missing.Send(t, "POST", "/v3/order", c.request(absent, nil)).Want(t, 404)
	missing.Send(t, "POST", "/v3/order", c.request(absent, nil)).Want(t, 404)

	forgetful := keyed.With("x-idempotency-key", "k-3").With("x-idempotency-error", "no-cache")
	forgetful.Send(t, "POST", "/v3/order", c.request(absent, nil)).Want(t, 404)
	kept := forgetful.Send(t, "POST", "/v3/order", c.request(walkInTest, nil)).Want(t, 200)
	require.Equal(t, string(kept.Body), string(forgetful.Send(t, "POST", "/v3/order", c.request(walkInTest, nil)).Want(t, 200).Body))
	forgetful.Send(t, "POST", "/v3/order", c.request(absent, nil)).Want(t, 409)
	require.Equal(t, 1, c.count())
}

func TestIdempotencyKey_invalidRequestIsNotStored(t *testing.T) {
	c := newFixture(t, nil)
	keyed := c.With("x-idempotency-key", "k-1")
	keyed.Send(t, "POST", "/v3/order", c.request(walkInTest, object{"billing_type": "barter"})).Want(t, 422)
	keyed.Send(t, "POST", "/v3/order", c.request(walkInTest, nil)).Want(t, 200)
	// A request is checked before its key is looked up.
	keyed.Send(t, "POST", "/v3/order", c.request(walkInTest, object{"billing_type": "barter"})).Want(t, 422)
	require.Equal(t, 1, c.count())

	require.Equal(t, []string{"header.x-idempotency-key"}, c.With("x-idempotency-key", string(make256())).
		Send(t, "POST", "/v3/order", c.request(walkInTest, nil)).Want(t, 422).Locs(t))
	require.Equal(t, []string{"header.x-idempotency-error"}, keyed.With("x-idempotency-error", "sometimes").
		Send(t, "POST", "/v3/order", c.request(walkInTest, nil)).Want(t, 422).Locs(t))
}

func make256() []byte {
	b := make([]byte, 256)
	for i := range b {
		b[i] = 'k'
	}
	return b
}

// slowKeys holds every answer back until it is let go.
type slowKeys struct {
	idempotency.Keys
	inside, release chan struct{}
}

func (k slowKeys) FinishKey(ctx context.Context, scope idempotency.Scope, until time.Time, answer []byte, user healthlab.UserID, keep time.Duration) error {
	k.inside <- struct{}{}
	<-k.release
	return k.Keys.FinishKey(ctx, scope, until, answer, user, keep)
}

func TestIdempotencyKey_inUseAnswersConflict(t *testing.T) {
	c := newFixture(t, nil)
	slow := slowKeys{memory.New(&memory.Options{UsersElsewhere: true}).OrderKeys(), make(chan struct{}), make(chan struct{})}
	config := c.config
	config.Idempotency = idempotency.New(slow, nil)
	client := func() *contract.Client {
		return contract.NewClient(t, config.handler(), httpapi.OpenAPI()).
			With("x-service-api-key", goodKey).With("x-idempotency-key", "k-1")
	}
	var first *contract.Reply
	var wait sync.WaitGroup
	body := own("First", nil) // the catalogue is asked meanwhile, so that it is no transaction
	wait.Go(func() { first = client().Send(t, http.MethodPost, "/v3/lab_tests", body) })
	<-slow.inside
	require.Equal(t, orders.IdempotencyInProgress, client().Send(t, http.MethodPost, "/v3/lab_tests", body).Want(t, 409).ErrorType(t))
	close(slow.release)
	wait.Wait()
	first.Want(t, 200)
	require.Equal(t, string(first.Body), string(client().Send(t, http.MethodPost, "/v3/lab_tests", body).Want(t, 200).Body))
}

// failingKeys is a store that is away.
type failingKeys struct{ idempotency.Keys }

func (failingKeys) StartKey(context.Context, idempotency.Scope, string, orders.OrderID, time.Duration) (idempotency.State, error) {
	return idempotency.State{}, healthlab.Unavailable
}

func TestIdempotencyKey_withoutAStoreIsRefused(t *testing.T) {
	c := newFixture(t, nil)
	config := c.config
	for want, requests := range map[int]*idempotency.Service{501: nil, 503: idempotency.New(failingKeys{}, nil)} {
		config.Idempotency = requests
		client := contract.NewClient(t, config.handler(), httpapi.OpenAPI()).With("x-service-api-key", goodKey)
		client.With("x-idempotency-key", "k").Send(t, "POST", "/v3/order", c.request(walkInTest, nil)).Want(t, want)
	}
	require.Zero(t, c.count())
}
