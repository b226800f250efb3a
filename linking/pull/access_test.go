package pull_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/linking/pull"
)

// A page is stored once its access is recorded, and not before. Pages without data are no access.
func TestPull_recordsAccessBeforeItStoresAPage(t *testing.T) {
	w := newFixture(t, nil, nil)
	w.cloud.hourly, w.cloud.page = true, 500
	var users []healthlab.UserID
	recorded := errors.New("not recorded")
	s := w.service(func(o *pull.Options) {
		o.Accessed = func(_ context.Context, of healthlab.TeamID, user healthlab.UserID) error {
			require.Equal(t, team, of)
			users = append(users, user)
			return recorded
		}
	})
	ann := w.person("ann")
	_, _ = s.Step(t.Context())
	require.NotEmpty(t, users)
	require.Empty(t, w.stored(ann))

	recorded, users = nil, nil
	w.wait(time.Hour)
	w.idle(s)
	require.NotEmpty(t, w.stored(ann))
	for _, user := range users {
		require.Equal(t, ann, user)
	}
	stored := len(users)
	w.cloud.hourly = false
	w.idle(s)
	require.Len(t, users, stored)
}
