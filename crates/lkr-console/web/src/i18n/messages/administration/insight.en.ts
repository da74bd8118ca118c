export const insight = {};
