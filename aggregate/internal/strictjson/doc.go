// Package strictjson reads JSON strictly: a [Reader] refuses unexpected and repeated keys, and
// collects every problem with its path.
package strictjson
