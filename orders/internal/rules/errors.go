package rules

import (
	"errors"

	"github.com/healthlab-dev/healthlab"
)

// Broken returns the error for a broken business rule; its type is rule, its kind Precondition.
func Broken(rule, msg string) error { return &healthlab.RuleError{Type: rule, Msg: msg} }

// Missing returns a NotFound error of type rule, for something that the team does not have or that does not exist.
func Missing(rule, msg string) error {
	return &healthlab.RuleError{Kind: healthlab.NotFound, Type: rule, Msg: msg}
}

// NotFound replaces a NotFound error without a type, such as one of a store, by an error of type rule. Other
// errors are returned unchanged.
func NotFound(err error, rule, msg string) error {
	var named *healthlab.RuleError
	if healthlab.KindOf(err) == healthlab.NotFound && !errors.As(err, &named) {
		return Missing(rule, msg)
	}
	return err
}

// FeatureNotEnabled is the error type of [NotEnabled].
const FeatureNotEnabled = "FEATURE_NOT_ENABLED"

// NotEnabled returns the error FEATURE_NOT_ENABLED (Forbidden). what is the name of the feature, in the singular.
func NotEnabled(what string) error {
	return &healthlab.RuleError{Kind: healthlab.Forbidden, Type: FeatureNotEnabled, Msg: what + " is not enabled for the team; ask the operator to enable it"}
}
