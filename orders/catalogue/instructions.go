package catalogue

import (
	"context"
	"fmt"
)

// InstructionSheet is how patients prepare for some tests, and how they take the
// sample.
type InstructionSheet struct {
	// LabID is whose sheet it is.
	LabID int `json:"lab_id"`
	// Method and SampleType are what it is for; empty for all of them.
	Method     CollectionMethod `json:"method"`
	SampleType SampleType       `json:"sample_type"`
	// MarkerIDs: it is for tests of any of these; empty for all.
	MarkerIDs []int `json:"marker_ids"`
	// Title heads the steps.
	Title string   `json:"title"`
	Steps []string `json:"steps"`
}

// InstructionSource is a [Source] that has instructions for patients. A Service looks
// for it once, in its constructor; without it there are none.
type InstructionSource interface {
	// Instructions returns the sheets for tests of a lab whose sample is collected
	// like this, in the order in which a patient reads them; none if there are none.
	Instructions(ctx context.Context, t LabTest) ([]InstructionSheet, error)
}

// instructed notes that there are instructions for a test.
func instructed(ctx context.Context, from InstructionSource, t *LabTest) error {
	sheets, err := sheetsFor(ctx, from, *t)
	if err != nil {
		return fmt.Errorf("find instructions: %w", err)
	}
	if len(sheets) > 0 {
		some := true
		t.HasCollectionInstructions = &some
	}
	return nil
}

func sheetsFor(ctx context.Context, from InstructionSource, t LabTest) ([]InstructionSheet, error) {
	if from == nil {
		return nil, nil
	}
	return from.Instructions(ctx, t)
}
