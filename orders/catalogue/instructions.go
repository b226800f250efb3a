package catalogue

import (
	"context"
	"fmt"
)

// InstructionSheet tells patients how to prepare for lab tests and how to take the sample.
type InstructionSheet struct {
	// LabID is the lab of the sheet.
	LabID int `json:"lab_id"`
	// Method and SampleType limit the tests of the sheet; empty means all.
	Method     CollectionMethod `json:"method"`
	SampleType SampleType       `json:"sample_type"`
	// MarkerIDs limit the sheet to tests with any of these markers; empty means all.
	MarkerIDs []int `json:"marker_ids"`
	// Title is the heading above the steps.
	Title string   `json:"title"`
	Steps []string `json:"steps"`
}

// InstructionSource is a [Source] with instructions for patients. New checks whether its Source implements it;
// otherwise there are no instructions.
type InstructionSource interface {
	// Instructions returns the sheets for the lab, collection method, sample type and markers of a lab test, in the
	// order in which a patient reads them; empty if there are none.
	Instructions(ctx context.Context, t LabTest) ([]InstructionSheet, error)
}

// setHasInstructions sets HasCollectionInstructions of t to true if from has instruction sheets for it. from may be
// nil.
func setHasInstructions(ctx context.Context, from InstructionSource, t *LabTest) error {
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
