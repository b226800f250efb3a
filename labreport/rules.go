package labreport

// RuleTooManyPages is the rule that a file with too many pages breaks.
const RuleTooManyPages = "TOO_MANY_PAGES"
