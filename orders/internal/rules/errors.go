package rules

import (
	"errors"

	"github.com/healthlab-dev/healthlab"
)

// Broken returns the error of a business rule.
func Broken(rule, msg string) error { return &healthlab.RuleError{Type: rule, Msg: msg} }

// Missing returns the NotFound error of something that the team does not have.
func Missing(rule, msg string) error {
	return &healthlab.RuleError{Kind: healthlab.NotFound, Type: rule, Msg: msg}
}

// NotFound gives a NotFound error of the store the error type of the HTTP API. An error that has a type keeps
// it.
func NotFound(err error, rule, msg string) error {
	var named *healthlab.RuleError
	if healthlab.KindOf(err) == healthlab.NotFound && !errors.As(err, &named) {
		return Missing(rule, msg)
	}
	return err
}

// featureNotEnabled is the error type of [FeatureOff].
const FeatureNotEnabled = "FEATURE_NOT_ENABLED"

// FeatureOff returns the error of a feature that is not enabled for the team.
func FeatureOff() error {
	return &healthlab.RuleError{Kind: healthlab.Forbidden, Type: FeatureNotEnabled, Msg: "this is not switched on for the team"}
}

// NotEnabled returns an error that names a feature which is not enabled for the team.
func NotEnabled(what string) error {
	return &healthlab.RuleError{Kind: healthlab.Forbidden, Type: "FEATURE_NOT_ENABLED", Msg: what + " is not switched on for the team"}
}
