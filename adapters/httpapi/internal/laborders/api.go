// Package laborders answers the operations of lab orders: orders and their appointments,
// results and documents, results in review, and the tests, laboratories, persons, payors and
// codes that orders name.
//
// It reads requests and writes answers; the rules are in package orders and those below it.
package laborders

import (
	"context"
	"slices"

	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/server"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/critical"
	"github.com/healthlab-dev/healthlab/orders/documents"
	"github.com/healthlab-dev/healthlab/orders/exchange"
	"github.com/healthlab-dev/healthlab/orders/idempotency"
	"github.com/healthlab-dev/healthlab/orders/simulation"
	"github.com/healthlab-dev/healthlab/orders/visits"
)

// API holds the services behind the operations.
type API struct {
	// Orders is required.
	Orders *orders.Service
	// Exchange takes in the results that laboratories report for Orders. Nil: the operations of results in review and
	// of simulations are not served.
	Exchange *exchange.Service
	// Visits books appointments for Orders. Nil: the operations of appointments are not served.
	Visits *visits.Service
	// Critical manages the critical results of Orders. Nil: their operations are not served.
	Critical *critical.Service
	// MatchTests runs tests of how results are matched to orders. Nil: their operations are not served.
	MatchTests *simulation.MatchTests
	// Documents prints the documents of Orders. Nil: reading a document answers 404.
	Documents *documents.Service
	// Idempotency stores the answers of requests with an idempotency key. Nil: such requests are refused with 501.
	Idempotency *idempotency.Service
	// Transact runs a function in the transaction of a change. If the function fails, what it has written is rolled
	// back. Nil: each call of a service commits by itself.
	Transact func(ctx context.Context, run func(context.Context) error) error
	// CapabilityName renames a capability of a patient service center. Nil: none is renamed.
	CapabilityName func(string) string
}

// Operations returns the operations of lab orders.
func (a API) Operations() []server.Operation {
	if a.Documents == nil {
		a.Documents = documents.New(a.Orders, nil, nil)
	}
	var places []server.Operation
	if a.Visits != nil {
		places = append(a.pscOperations(), a.visitOperations()...)
	}
	return slices.Concat(a.orderOperations(), a.documentOperations(), places, a.labTestOperations(), a.personOperations(), a.exchangeOperations(), a.criticalOperations(), a.compendiumOperations())
}

// Files in the order of reading: each uses those before it.
//
//	api.go bound.go critical.go labtests.go orders.go documents.go compendium.go persons.go place.go psc.go
//	unmatched.go visits.go
