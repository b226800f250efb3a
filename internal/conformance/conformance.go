// Package conformance has what the conformance suites of the stores share: ids derived from names, concurrent
// calls, and [RunBroken], which runs a suite on deliberately broken stores to show that it detects what they break.
//
// It imports package testing: only suites and tests import it.
package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
)

// Named returns an id that is computed from a name. Equal names give equal ids.
func Named(name string) uuid.UUID { return uuid.NewSHA1(uuid.Nil, []byte(name)) }

// Team returns the team id that is computed from a name.
func Team(name string) healthlab.TeamID { return healthlab.TeamID{UUID: Named("team " + name)} }

// User returns the user id that is computed from a name.
func User(name string) healthlab.UserID { return healthlab.UserID{UUID: Named("user " + name)} }

// NewTeam returns a new random team id.
func NewTeam() healthlab.TeamID { return healthlab.TeamID{UUID: uuid.New()} }

// NewUser returns a new random user id.
func NewUser() healthlab.UserID { return healthlab.UserID{UUID: uuid.New()} }

// ErrRefused is returned by the functions that tests pass to an Update, to make it fail.
var ErrRefused = errors.New("the closure of the test refuses the write")

// Ended returns a context that is already cancelled.
func Ended(t testing.TB) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

// Together calls call(0) to call(n-1) concurrently and returns their errors in this order.
func Together(n int, call func(i int) error) []error {
	errs := make([]error, n)
	var all sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		all.Go(func() {
			<-start
			errs[i] = call(i)
		})
	}
	close(start)
	all.Wait()
	return errs
}

// Successes counts the calls that returned no error.
func Successes(errs []error) (n int) {
	for _, err := range errs {
		if err == nil {
			n++
		}
	}
	return n
}

// ErrOf drops the result of a call and returns its error: ErrOf(store.Get(ctx, id)).
func ErrOf[T any](_ T, err error) error { return err }

// JSON returns v as JSON, so that tests can compare values with times. Equal instants in UTC are equal in JSON;
// require.Equal may find them different.
func JSON(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	require.NoError(t, err)
	return string(b)
}

// Sorted returns the test cases of a map in the order of their names.
func Sorted[T any](cases map[string]T) iter.Seq2[string, T] {
	return func(yield func(string, T) bool) {
		for _, name := range slices.Sorted(maps.Keys(cases)) {
			if !yield(name, cases[name]) {
				return
			}
		}
	}
}
