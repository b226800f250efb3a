// Package conformance has what the conformance suites of the stores share: ids that tests
// derive from names, calls that run at the same time, and the runner of deliberately broken
// stores, which shows that a suite fails where a store breaks a promise.
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

// Named returns the id derived from a name. Equal names have equal ids.
func Named(name string) uuid.UUID { return uuid.NewSHA1(uuid.Nil, []byte(name)) }

// Team returns the team of a name.
func Team(name string) healthlab.TeamID { return healthlab.TeamID{UUID: Named("team " + name)} }

// User returns the user of a name.
func User(name string) healthlab.UserID { return healthlab.UserID{UUID: Named("user " + name)} }

// NewTeam returns a new random team id.
func NewTeam() healthlab.TeamID { return healthlab.TeamID{UUID: uuid.New()} }

// NewUser returns a new random user id.
func NewUser() healthlab.UserID { return healthlab.UserID{UUID: uuid.New()} }

// ErrRefused is the error of a closure that refuses a change.
var ErrRefused = errors.New("the closure of the test refuses the write")

// Ended returns a cancelled context.
func Ended(t testing.TB) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

// Together runs n calls concurrently and returns their errors, in the order of i.
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

// ErrOf returns the error of a call with one result: ErrOf(store.Get(ctx, id)).
func ErrOf[T any](_ T, err error) error { return err }

// JSON returns v as JSON, for comparisons. Times in UTC that are equal instants are equal in JSON, whereas
// require.Equal may treat them as unequal.
func JSON(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	require.NoError(t, err)
	return string(b)
}

// Sorted returns the cases of a table in the order of their names.
func Sorted[T any](cases map[string]T) iter.Seq2[string, T] {
	return func(yield func(string, T) bool) {
		for _, name := range slices.Sorted(maps.Keys(cases)) {
			if !yield(name, cases[name]) {
				return
			}
		}
	}
}
