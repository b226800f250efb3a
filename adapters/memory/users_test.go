package memory_test

import (
	"context"
	"testing"

	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/adapters/storetest"
)

var ctx = context.Background()

func newUsers(testing.TB) storetest.UsersHarness {
	store := memory.New(nil)
	return storetest.UsersHarness{Users: store.Users(), Messages: store.WebhookLog(), Data: store.Data()}
}

func TestUsers(t *testing.T) { storetest.RunUsers(t, newUsers) }

func TestUsersModel(t *testing.T) { storetest.RunUsersModel(t, newUsers) }

func BenchmarkUsers(b *testing.B) { storetest.BenchUsers(b, newUsers) }
