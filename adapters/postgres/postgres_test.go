package postgres_test

import (
	"testing"

	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/adapters/storetest"
	"github.com/healthlab-dev/healthlab/internal/pgtest"
)

func newUsers(t testing.TB) storetest.UsersHarness {
	s := postgres.New(pgtest.Pool(t), nil)
	return storetest.UsersHarness{Users: s.Users(), Messages: s.WebhookLog(), Data: s.Data()}
}

func TestUsers(t *testing.T) {
	t.Parallel()
	storetest.RunUsers(t, newUsers)
}

func TestUsersModel(t *testing.T) {
	t.Parallel()
	storetest.RunUsersModel(t, newUsers)
}

func newData(t testing.TB) storetest.DataHarness {
	s := postgres.New(pgtest.Pool(t), nil)
	return storetest.DataHarness{Data: s.Data(), Users: s.Users(), Messages: s.WebhookLog()}
}

func TestData(t *testing.T) {
	t.Parallel()
	storetest.RunData(t, newData)
}

func TestDataModel(t *testing.T) {
	t.Parallel()
	storetest.RunDataModel(t, newData)
}
