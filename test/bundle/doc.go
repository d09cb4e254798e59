// Package bundle has rules for OLM bundles that are checked before a release and, by the scorecard, on a cluster.
package bundle
