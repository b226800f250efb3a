package postgres_test

import (
	"testing"

	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/healthdata/healthdatatest"
	"github.com/healthlab-dev/healthlab/internal/pgtest"
)

func newUsers(t testing.TB) healthdatatest.UsersHarness {
	s := postgres.New(pgtest.Pool(t), nil)
	return healthdatatest.UsersHarness{Users: s.Users(), Messages: s.WebhookLog(), Data: s.Data()}
}

func TestUsers(t *testing.T) {
	t.Parallel()
	healthdatatest.RunUsers(t, newUsers)
}

func TestUsersModel(t *testing.T) {
	t.Parallel()
	healthdatatest.RunUsersModel(t, newUsers)
}

func (f form) newData(t testing.TB) healthdatatest.DataHarness {
	s := f.New(pgtest.Pool(t), nil)
	return healthdatatest.DataHarness{Data: s.Data(), Users: s.Users(), Messages: s.WebhookLog()}
}

func TestData(t *testing.T) {
	t.Parallel()
	healthdatatest.RunData(t, inClear.newData)
}

func TestDataEncrypted(t *testing.T) {
	t.Parallel()
	healthdatatest.RunData(t, encrypted.newData)
}

func TestDataModel(t *testing.T) { eachForm(t, testDataModel) }

func testDataModel(t *testing.T, f form) {
	t.Parallel()
	healthdatatest.RunDataModel(t, f.newData)
}
