package catalogue

import "github.com/healthlab-dev/healthlab/orders/internal/rules"

// OrderSet selects the lab tests and markers of an order.
type OrderSet struct {
	LabTestIDs []LabTestID `json:"lab_test_ids" wire:"opt"`
	AddOn      *AddOn      `json:"add_on"`
	// LabAccountID is the lab account. It must equal the lab_account_id of the order's request, if both are
	// given.
	LabAccountID *LabAccountID `json:"lab_account_id"`
}

// AddOn selects markers outside of lab tests, by exactly one of the two kinds of id.
type AddOn struct {
	MarkerIDs   []int    `json:"marker_ids" wire:"opt"`
	ProviderIDs []string `json:"provider_ids" wire:"opt"`
}

// Select converts the set to a selection with a collection method and a lab account, if given. RuleErrors:
// NO_TESTS_SELECTED, CONFLICTING_TEST_SELECTION, ADD_ON_REQUIRES_COLLECTION_METHOD, ADD_ON_IDS_MISSING,
// ADD_ON_IDS_CONFLICT; the first that applies, in this order.
func (set *OrderSet) Select(method *CollectionMethod, account *LabAccountID) (Selection, error) {
	w := Selection{LabTests: set.LabTestIDs, Method: method, Account: account}
	if len(set.LabTestIDs) == 0 && set.AddOn == nil {
		return w, rules.Broken(NoTestsSelected, "order_set must have lab_test_ids or add_on")
	}
	if set.LabAccountID != nil {
		if w.Account != nil && *w.Account != *set.LabAccountID {
			return w, rules.Broken(ConflictingSelection, "order_set.lab_account_id must equal lab_account_id of the order")
		}
		w.Account = set.LabAccountID
	}
	if add := set.AddOn; add != nil {
		switch {
		case w.Method == nil:
			return w, rules.Broken(AddOnRequiresMethod, "collection_method is required for an add_on without lab tests")
		case len(add.MarkerIDs) == 0 && len(add.ProviderIDs) == 0:
			return w, rules.Broken(AddOnIDsMissing, "add_on must have marker_ids or provider_ids")
		case len(add.MarkerIDs) > 0 && len(add.ProviderIDs) > 0:
			return w, rules.Broken(AddOnIDsConflict, "add_on must have marker_ids or provider_ids, not both")
		}
		w.Markers, w.ProviderIDs = add.MarkerIDs, add.ProviderIDs
	}
	return w, nil
}
