//! The decision, case by case.
