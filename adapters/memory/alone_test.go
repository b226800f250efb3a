package memory_test

import (
	"context"
	"testing"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/healthdatatest"
	"github.com/healthlab-dev/healthlab/webhook/webhooktest"
)

// The suites of one interface alone hold for the interfaces of the store.
func TestUsersDataAndOutbox_passTheirSuitesWithoutOtherStores(t *testing.T) {
	t.Run("Users", func(t *testing.T) {
		healthdatatest.RunUsersAlone(t, func(testing.TB) healthdatatest.UsersAloneHarness {
			s := memory.New(nil)
			return healthdatatest.UsersAloneHarness{Users: s.Users(), Messages: s.WebhookLog()}
		})
	})
	t.Run("Data", func(t *testing.T) {
		healthdatatest.RunDataAlone(t, func(testing.TB) healthdatatest.DataAloneHarness {
			s := memory.New(nil)
			return healthdatatest.DataAloneHarness{
				Data: s.Data(), Messages: s.WebhookLog(),
				Add: func(ctx context.Context, u healthdata.User) error { return s.Users().Insert(ctx, u, 0) },
				Delete: func(ctx context.Context, u healthdata.User) error {
					_, err := s.Users().Update(ctx, u.Team, u.ID, func(u *healthdata.User) ([]healthlab.Event, error) {
						u.DeletedAt = u.CreatedOn.Time
						return nil, nil
					})
					return err
				},
			}
		})
	})
	t.Run("Outbox", func(t *testing.T) {
		webhooktest.RunOutbox(t, func(*testing.T) webhooktest.OutboxHarness {
			s := memory.New(nil)
			return webhooktest.OutboxHarness{Outbox: s.Outbox(), Message: s.WebhookLog().Message}
		})
	})
}
