// Package vector holds rows as columns of values, filters them with three-valued conditions,
// and computes a function of the values of a group: a count, a sum, a percentile.
package vector
