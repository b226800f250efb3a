package prove

var SequentialCount = sequential
