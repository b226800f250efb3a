package orders

// CoverageNotice is what a laboratory knows of an order that the patient's insurance
// will probably not pay for. Printing or logging it shows nothing.
type CoverageNotice struct {
	Items []CoverageItem
	// Note is a further word of the laboratory; empty for none.
	Note string
}

// CoverageItem is one thing that is probably not paid for.
type CoverageItem struct {
	// Name is what it is, in words.
	Name string
	// Reason is why it is probably not paid for.
	Reason string
	// CostMinor is the estimated cost in cents.
	CostMinor int64
}
