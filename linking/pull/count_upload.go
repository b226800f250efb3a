package pull

import (
	"context"
	"fmt"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// CountUpload counts uploaded data for [Service.Resources]. Use it as healthdata.Options.Uploaded. It returns
// NotFound if the user or the connection no longer exists.
func (s *Service) CountUpload(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, provider, resource string, got healthdata.Received) error {
	now := s.now()
	err := s.store.Count(ctx, UploadKey(team, user, provider, resource), func(t *Task) {
		if t.Status == "" { // the first upload
			t.Status, t.ScheduledAt = Success, now
		}
		t.addUpload(&got, now)
	})
	if err != nil {
		return fmt.Errorf("count upload: %w", err)
	}
	return nil
}

// UploadKey returns the key of the task that counts uploads.
func UploadKey(team healthlab.TeamID, user healthlab.UserID, provider, resource string) Key {
	return Key{Ref{team, user, provider}, resource, Uploads}
}

func (t *Task) addUpload(got *healthdata.Received, now time.Time) {
	t.LastTry, t.LastOK = now, true
	t.addCounts(got, now)
}
