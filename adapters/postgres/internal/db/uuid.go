package db

import (
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"
)

// plainly returns an argument, with ids in the form in which they go to the server. The
// driver asks a uuid.UUID for its text, and an array of them one by one, which takes
// longer than all else that it does for a write.
func plainly(argument any) any {
	switch v := argument.(type) {
	case uuid.UUID:
		return binaryID(v)
	case *uuid.UUID:
		if v != nil {
			return binaryID(*v)
		}
	case []uuid.UUID:
		return binaryIDs(v)
	case []*uuid.UUID:
		return nullableIDs(v)
	}
	return argument
}

// plainArguments makes all arguments of a statement what plainly makes of one.
func plainArguments(args []any) {
	for i, a := range args {
		args[i] = plainly(a)
	}
}

type binaryID uuid.UUID

// UUIDValue is how the driver sees an id.
func (id binaryID) UUIDValue() (pgtype.UUID, error) { return pgtype.UUID{Bytes: id, Valid: true}, nil }

type (
	binaryIDs   []uuid.UUID
	nullableIDs []*uuid.UUID
)

// Dimensions, Index and IndexType are how the driver sees an array.
func (ids binaryIDs) Dimensions() []pgtype.ArrayDimension { return oneDimension(ids == nil, len(ids)) }
func (ids binaryIDs) Index(i int) any                     { return (*binaryID)(&ids[i]) }
func (ids binaryIDs) IndexType() any                      { return (*binaryID)(nil) }

// Dimensions, Index and IndexType are how the driver sees an array.
func (ids nullableIDs) Dimensions() []pgtype.ArrayDimension {
	return oneDimension(ids == nil, len(ids))
}
func (ids nullableIDs) Index(i int) any {
	if ids[i] == nil {
		return nil
	}
	return (*binaryID)(ids[i])
}
func (ids nullableIDs) IndexType() any { return (*binaryID)(nil) }

func oneDimension(null bool, n int) []pgtype.ArrayDimension {
	if null {
		return nil
	}
	return []pgtype.ArrayDimension{{Length: int32(n), LowerBound: 1}}
}

// PlainTargets changes the targets of a scan so that ids come in the form in which the
// server sends them: the driver would hand a uuid.UUID their text to parse.
func PlainTargets(targets ...any) []any {
	for i, to := range targets {
		switch v := to.(type) {
		case *uuid.UUID:
			targets[i] = (*scannedID)(v)
		case **uuid.UUID:
			targets[i] = nullableID{v}
		}
	}
	return targets
}

type (
	scannedID  uuid.UUID
	nullableID struct{ to **uuid.UUID }
)

// ScanUUID is how the driver hands over an id.
func (id *scannedID) ScanUUID(v pgtype.UUID) error {
	*id = v.Bytes
	return nil
}

// ScanUUID is how the driver hands over an id, or that there is none.
func (id nullableID) ScanUUID(v pgtype.UUID) error {
	*id.to = nil
	if v.Valid {
		*id.to = (*uuid.UUID)(&v.Bytes)
	}
	return nil
}
