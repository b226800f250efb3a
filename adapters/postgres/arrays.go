package postgres

import (
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"
)

// uuids is an argument for uuid[]. A plain slice of ids goes through text, one by one,
// which takes the driver longer than all else that it does for a write.
type uuids []uuid.UUID

// Dimensions, Index and IndexType are how the driver sees an array.
func (u uuids) Dimensions() []pgtype.ArrayDimension {
	if u == nil {
		return nil
	}
	return []pgtype.ArrayDimension{{Length: int32(len(u)), LowerBound: 1}}
}

func (u uuids) Index(i int) any { return (*uuidOf)(&u[i]) }
func (u uuids) IndexType() any  { return (*uuidOf)(nil) }

type uuidOf uuid.UUID

func (u *uuidOf) UUIDValue() (pgtype.UUID, error) { return pgtype.UUID{Bytes: *u, Valid: true}, nil }
