// Package vector holds rows as columns of values, filters them with three-valued conditions,
// and folds the values of a group into one: a count, a sum, a percentile.
package vector
