package memory_test

import (
	"context"
	"testing"

	"github.com/healthlab-dev/healthlab/healthdata/healthdatatest"
)

var ctx = context.Background()

func newUsers(testing.TB) healthdatatest.UsersHarness {
	store := newStore()
	return healthdatatest.UsersHarness{Users: store.Users(), Messages: store.WebhookLog(), Data: store.Data()}
}

func TestUsers_passTheirStoreSuite(t *testing.T) { healthdatatest.RunUsers(t, newUsers) }

func TestUsers_passTheirModelTest(t *testing.T) { healthdatatest.RunUsersModel(t, newUsers) }

func BenchmarkUsers(b *testing.B) { healthdatatest.BenchUsers(b, newUsers) }
