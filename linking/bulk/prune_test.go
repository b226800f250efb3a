package bulk_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/linking/bulk"
)

// Ended operations are listed for 90 days and then deleted, with or without a running worker.
// Operations in progress are never deleted.
func TestOperations_areDeleted90DaysAfterTheyEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		team := healthlab.TeamID{UUID: uuid.New()}
		_, _, moves := service()
		for range 30 { // more than one write forgets
			_, err := moves.Trigger(ctx, team, "acme_band", []healthlab.UserID{{UUID: uuid.New()}}, false)
			require.NoError(t, err)
		}
		for range 300 { // in their order, as slowly as the provider takes them
			_, err := moves.Step(ctx)
			require.NoError(t, err)
			time.Sleep(time.Second)
		}
		listed := func() int {
			list, _, err := moves.Ops(ctx, bulk.OpsQuery{Team: team, Size: 50})
			require.NoError(t, err)
			for _, op := range list {
				require.NotEqual(t, bulk.InProgress, op.Status)
			}
			return len(list)
		}
		require.Equal(t, 30, listed())
		time.Sleep(90*24*time.Hour - 10*time.Minute)
		_, err := moves.Step(ctx)
		require.NoError(t, err)
		require.Equal(t, 30, listed())
		time.Sleep(10 * time.Minute)
		_, err = moves.Step(ctx)
		require.NoError(t, err)
		require.Zero(t, listed())
	})
}
