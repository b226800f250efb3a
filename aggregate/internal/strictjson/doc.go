// Package strictjson reads JSON so that no key goes unnoticed: a [Reader] refuses those that
// are not expected or stand twice, and gathers every problem with its path.
package strictjson
