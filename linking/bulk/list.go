package bulk

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
)

// OpsQuery selects a page of a team's operations.
type OpsQuery struct {
	Team healthlab.TeamID
	// Cursor is empty for the first page, then the cursor of the previous result.
	Cursor string
	// Size is the greatest number of operations: 0 to [MaxOps].
	Size int
}

// MaxOps is the largest page of operations.
const MaxOps = 50

// Ops returns a page of a team's operations, the latest first, and the cursor of the next
// page; empty on the last one. Errors: Invalid (the size or the cursor), Forbidden
// ([RuleNotEnabled]).
func (s *Service) Ops(ctx context.Context, q OpsQuery) (list []Op, next string, err error) {
	if _, err := s.enabled(ctx, q.Team); err != nil {
		return nil, "", fmt.Errorf("list bulk operations: %w", err)
	}
	var p healthlab.Problems
	if q.Size < 0 || q.Size > MaxOps {
		p.Add("range", fmt.Sprintf("must be from 0 to %d", MaxOps), "page_size")
	}
	before, ok := q.before()
	if !ok {
		p.Add("cursor", "must be the cursor of an earlier page of the same query", "next_cursor")
	}
	if err := p.Err(); err != nil {
		return nil, "", fmt.Errorf("list bulk operations: %w", err)
	}
	list, err = s.store.Ops(ctx, q.Team, before, q.Size+1)
	if err != nil {
		return nil, "", fmt.Errorf("list bulk operations: %w", err)
	}
	if len(list) > q.Size {
		list = list[:q.Size]
		if q.Size > 0 {
			last := &list[q.Size-1]
			next = q.cursor(ListPosition{last.StartedAt, last.ID})
		}
	}
	return list, next, nil
}

func (q *OpsQuery) cursor(at ListPosition) string {
	b := binary.BigEndian.AppendUint64(nil, uint64(at.StartedAt.UnixMicro()))
	b = append(b, at.ID[:]...)
	sum := sha256.Sum256(fmt.Appendf(nil, "bulk %s %x", q.Team, b))
	return base64.RawURLEncoding.EncodeToString(append(b, sum[:8]...))
}

func (q *OpsQuery) before() (ListPosition, bool) {
	if q.Cursor == "" {
		return ListPosition{}, true
	}
	b, err := base64.RawURLEncoding.DecodeString(q.Cursor)
	if err != nil || len(b) != 32 {
		return ListPosition{}, false
	}
	at := ListPosition{time.UnixMicro(int64(binary.BigEndian.Uint64(b))).UTC(), uuid.UUID(slices.Clone(b[8:24]))}
	return at, q.cursor(at) == q.Cursor
}
