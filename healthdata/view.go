package healthdata

import (
	"context"
	"fmt"

	"github.com/healthlab-dev/healthlab"
)

// View calls read with a consistent view of one user's data, as it is stored, for
// packages that put questions to it. The view is used by one goroutine at a time and
// not after read returns; what it returns is shared and must not be changed. The error
// of read is returned unchanged. healthlab.NotFound without such a live user.
func (s *Service) View(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, read func(View) error) error {
	if _, err := s.live(ctx, team, user); err != nil {
		return fmt.Errorf("look at data: %w", err)
	}
	return s.data.View(ctx, team, user, read)
}
